"""The command line: `--help` lists the commands. Parses and prints; the work is elsewhere."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import COMMAND, markers, pipeline
from .errors import CODES, Diagnostics, did_you_mean
from .functions import FUNCTIONS, INTERNAL
from .model import AMP, DTYPE_GROUPS, DTYPES, FAMILIES, HOMES, OPERATORS, PROMOTE, Base, OpFile
from .schema import KEYS
from .shape_rules import SHAPES
from .structured import META, TENSOR


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    if args.ops is None:
        args.ops = _default_ops()
    args.beside = args.out is None
    if args.beside:
        args.out = str(Path(args.ops).parent / "generated")
    from .base import is_installed
    from .plan import PlanError

    if is_installed(Path(args.ops).resolve()) and (what := _of_sources(args)):
        of_yours = ", or --ops FILE with entries of your own" if args.run in (write, new) else ""
        print(f"{COMMAND} {what}: needs tensorplay's source tree{of_yours}; {args.ops} is installed", file=sys.stderr)
        return 1

    try:
        result: int = args.run(args)
        return result
    except Refused as e:
        return _fail(e.diags)
    except PlanError as e:
        return _fail(e.diags)
    except BrokenPipeError:  # `codegen list | head`
        sys.stderr.close()
        return 0
    except OSError as e:  # a place that can't be read or written
        if e.filename is None:
            raise
        print(f"codegen: {e.filename}: {e.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--ops", metavar="FILE", help="the entries (default: ops.yaml)")
    common.add_argument("--out", metavar="DIR", help="the generated files (default: generated/ beside the entries)")
    p = argparse.ArgumentParser(prog=COMMAND, description="ops.yaml -> generated/: every op is one entry.")
    sub = p.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        c = sub.add_parser(name, parents=[common], help=text, description=text)
        c.set_defaults(run=run)
        return c

    command("write", write, "generate: files that did not change stay untouched, stale ones go")
    c = command("check", check, "check the entries, and that the generated files are what they say")
    c.add_argument("--verbose", action="store_true", help="say of every case what could not be compared")
    c.add_argument("--entries", action="store_true", help="check the entries alone, not the generated files")
    c.add_argument("--draft", action="store_true", help="kernels may still be missing")
    c = command("explain", explain, "what an entry says and what follows from it")
    c.add_argument("op")
    c.add_argument("--no-code", action="store_true", help="leave the generated C++ out")
    c.add_argument("--png", metavar="FILE", help="draw value and derivative over the domain instead")
    for name, text in (
        ("test", "every check of one op; an op of a file of your own is compiled first"),
        ("bench", "one elementwise op against the ops it is fused from, and PyTorch if installed"),
        ("doc", "the reference page of one op"),
    ):
        c = command(name, {"test": one, "bench": one, "doc": doc}[name], text)
        c.add_argument("op")
        c.set_defaults(command=name)
    c = command("new", new, "write the skeleton of an entry into its family")
    c.add_argument("op")
    c.add_argument("--family", choices=sorted(FAMILIES))
    c.add_argument("--expr", metavar="FORMULA", help="elementwise value, or the composition of another family")
    c.add_argument("--doc", metavar="TEXT")
    c.add_argument("--like", metavar="REFERENCE", help="what the tests compare with, numpy.tanh for example")
    c.add_argument("--print", action="store_true", dest="dry", help="print the entry, do not write it")
    c = command("list", list_, "the ops by family")
    c.add_argument("--missing", choices=("tangent", "batch", "doc"), help="ops that lack it")
    c.add_argument("--todo", action="store_true", help="derivatives that are missing, with the reason")
    c.add_argument("--handwritten", action="store_true", help="hand-written C++ and Python lines an entry needs")
    c.add_argument("--python", action="store_true", help="public ops written in Python")
    c.add_argument("--catalogue", metavar="FILE", help="what is short beside a table of names, dtypes and forms")
    c.add_argument("--names", action="store_true", help="names only, one a line")
    c = command("mutate", mutate, "generate from entries that carry one mutation each")
    c.add_argument("--seed", type=int, default=0)
    c.add_argument("--json", action="store_true", help="print {op: mutation} as JSON")
    c.add_argument("--dry", action="store_true", help="choose and print, write nothing")
    c = command("fuzz", fuzz, "random single edits of valid entries: each is refused on its line or means the same")
    c.add_argument("--seed", type=int, default=0)
    c.add_argument("--count", type=int, default=2000)
    c.add_argument("--verbose", action="store_true", help="print every edit and its outcome")
    c = command("pack", pack, "make a project of your own ops that pip installs")
    c.add_argument("action", choices=("init",))
    c.add_argument("name", help="of the project; its package has _ for -")
    c.add_argument("--where", default=".", help="the folder to make it in")
    command("cmake-dir", cmake_dir, "where find_package(tensorplay) finds tensorplayConfig.cmake")
    c = command("schema", schema, "the keys, families and rules of an entry")
    c.add_argument("--json", action="store_true", help="as JSON Schema, for completion in an editor")
    return p


def _of_sources(args: argparse.Namespace) -> str:
    """The command, where it reads or changes more of the library than its entries; '' for the others."""
    if args.run is list_:
        found = next((k for k in ("handwritten", "python", "catalogue") if getattr(args, k)), "")
        return f"list --{found}" if found else ""
    names = {write: "write", new: "new", mutate: "mutate", fuzz: "fuzz"}
    return "" if getattr(args, "dry", False) and args.run is not new else names.get(args.run, "")


def _default_ops() -> str:
    """ops.yaml here, else the one installed beside this package."""
    here = Path("ops.yaml")
    packaged = Path(__file__).with_name("ops.yaml")
    return str(here if here.exists() or not packaged.exists() else packaged)


def _fail(diags: Diagnostics) -> int:
    print(diags.render(), file=sys.stderr)
    return 1


# ---- write and check ------------------------------------------------------------------------------------------------


def write(args: argparse.Namespace) -> int:
    file, diags, _ = pipeline.checked(args.ops, again=False)
    if diags:
        return _fail(diags)
    return _write(file, args.out, quiet=False)


def _write(file: OpFile, out: str, quiet: bool) -> int:
    from .write import write as write_files

    report = write_files(_outputs(file), Path(out))
    if not quiet:
        print(report)
    return 0


class Refused(Exception):
    """Diagnostics of a stage behind the model."""

    def __init__(self, diags: Diagnostics) -> None:
        super().__init__()
        self.diags = diags


def _outputs(file: OpFile) -> Mapping[str, str]:
    from .plan import PlanError

    try:
        return pipeline.outputs(file)
    except PlanError as e:
        raise Refused(e.diags) from None


def check(args: argparse.Namespace) -> int:
    if args.beside and not Path(args.out).is_dir() and not (Path(args.ops).parent / "csrc" / "core").is_dir():
        args.entries = True  # nothing was generated here
    again = args.verbose or not args.entries
    file, diags, skipped = pipeline.checked(args.ops, draft=args.draft, unreached=True, again=again)
    if diags:
        return _fail(diags)
    from .check import told

    for line in [f"not compared: {line}" for line in skipped] if args.verbose else told(skipped):
        print(line)
    if not args.entries:
        from .write import diff

        text = diff(_outputs(file), Path(args.out))
        if text:
            print(text)
            suffix = "" if args.ops == "ops.yaml" else f" --ops {args.ops} --out {args.out}"
            print(f"{args.out} is not what {args.ops} says; run: {COMMAND} write{suffix}", file=sys.stderr)
            return 1
    print(f"{args.ops}: {len(file.entries)} entries, no fault")
    return 0


# ---- one op ---------------------------------------------------------------------------------------------------------


def explain(args: argparse.Namespace) -> int:
    from .explain import explain as text_of

    file, diags, _ = pipeline.checked(args.ops, numeric=False)
    entry = file.get(args.op) or next((e for e in file.entries if args.op in e.aliases), None)
    if entry is None:
        if diags:
            return _fail(diags)
        hint = did_you_mean(args.op, file.by_name)
        print(f"codegen explain: no op '{args.op}' in {args.ops}. {hint}".rstrip(), file=sys.stderr)
        return 1
    if args.png:
        from .plot import Refused as NoPlot
        from .plot import plot

        try:
            plot(entry, args.png)
        except NoPlot as e:
            print(e, file=sys.stderr)
            return 1
        print(args.png)
        return 0
    print(text_of(file, entry, code=not args.no_code), end="")
    return 0


def doc(args: argparse.Namespace) -> int:
    from .plan_docs import page
    from .render import page_text

    file, diags, _ = pipeline.checked(args.ops, numeric=False)
    entry = file.get(args.op)
    if entry is None:
        if diags:
            return _fail(diags)
        print(f"codegen doc: no op '{args.op}' in {args.ops}. {did_you_mean(args.op, file.by_name)}", file=sys.stderr)
        return 1
    print(page_text(page(entry)), end="")
    return 0


def one(args: argparse.Namespace) -> int:
    """Commands that run an op: in a process of their own, since the generator never imports the library."""
    import subprocess

    command = [sys.executable, "-m", "tensorplay.testing.one", args.command, args.ops, args.op]
    return subprocess.run(command).returncode


def new(args: argparse.Namespace) -> int:
    from . import new as N
    from .base import base_of

    if sys.stdin.isatty() and sys.stdout.isatty():
        N.ask(args)
    try:
        text, entry = N.entry(args.ops, args.op, args.family, args.expr, args.doc, args.like)
    except N.Refused as e:
        print(e, file=sys.stderr)
        return 1
    if not args.dry:
        Path(args.ops).write_text(text, encoding="utf-8")
        where = "" if args.ops == "ops.yaml" else f" --ops {args.ops}"
        then = "write" if base_of(args.ops) is None else "test " + args.op
        print(
            f"added to {args.ops}; next: {COMMAND} explain {args.op}{where}, {COMMAND} {then}{where}", file=sys.stderr
        )
    print(entry, end="")
    return 0


# ---- many ops -------------------------------------------------------------------------------------------------------


def list_(args: argparse.Namespace) -> int:
    from . import listing

    file, diags, _ = pipeline.checked(args.ops, numeric=False)
    if diags:
        return _fail(diags)
    if args.names:
        lines = [e.op for e in file.entries]
    elif args.catalogue:
        from . import catalogue

        try:
            lines = catalogue.report(file, catalogue.read(args.catalogue), pipeline.root_of(Path(args.ops).resolve()))
        except catalogue.CatalogueError as e:
            print(f"codegen list: {e}", file=sys.stderr)
            return 1
    elif args.missing:
        lines = listing.missing(file, args.missing)
    elif args.todo:
        lines = listing.todo(file)
    elif args.handwritten:
        lines = listing.handwritten(file, pipeline.root_of(Path(args.ops).resolve()))
    elif args.python:
        lines = listing.python(file, pipeline.root_of(Path(args.ops).resolve()))
    else:
        lines = listing.by_family(file)
    print("\n".join(lines))
    return 0


def mutate(args: argparse.Namespace) -> int:
    from .mutate import mutate_file

    file, diags, _ = pipeline.checked(args.ops, numeric=False)
    if diags:
        return _fail(diags)
    mutated, done = mutate_file(file, args.seed, pipeline.renders(file))
    if not args.dry:
        _write(mutated, args.out, quiet=True)
    if args.json:
        print(json.dumps(done, indent=1))
    else:
        for op, what in done.items():
            print(f"{op}: {what}")
        print(f"{len(done)} of {len(file.entries)} entries mutated, seed {args.seed}")
    return 0


def fuzz(args: argparse.Namespace) -> int:
    from .fuzz import Fuzzer

    file, diags, _ = pipeline.checked(args.ops)
    if diags:
        return _fail(diags)
    root = pipeline.root_of(Path(args.ops).resolve())
    return Fuzzer(file, args.seed, args.verbose, markers.scan(root) if root else None).run(args.count)


def pack(args: argparse.Namespace) -> int:
    from . import pack as P

    try:
        written = P.init(args.name, Path(args.where))
    except P.Refused as e:
        print(e, file=sys.stderr)
        return 1
    print("\n".join(f"wrote   {p}" for p in written))
    print(f"next: pip install {Path(args.where) / args.name}, then pytest there", file=sys.stderr)
    return 0


def cmake_dir(args: argparse.Namespace) -> int:
    here = Path(__file__).parent
    found = next((p for p in (here.parent / "cmake", here.parent / "tensorplay" / "cmake")
                  if (p / "tensorplayConfig.cmake").is_file()), None)  # fmt: skip
    if found is None:
        print("codegen cmake-dir: this generator is not that of an installed tensorplay", file=sys.stderr)
        return 1
    print(found)
    return 0


def schema(args: argparse.Namespace) -> int:
    def table(title: str, rows: Mapping[str, str]) -> None:
        width = max(map(len, rows))
        print(f"\n{title}")
        for name, text in rows.items():
            print(f"  {name:{width}}  {text}")

    if args.json:
        from .schema import json_schema

        print(json.dumps(json_schema(), indent=1))
        return 0
    print("An entry of ops.yaml; the page 'ops.yaml: the schema' of the documentation says more.")
    table("keys (* required)", {k.name + " *" * k.required: f"{k.value}. {k.doc}" for k in KEYS.values()})
    table("families", {f.name: f.doc for f in FAMILIES.values()})
    table("promote", PROMOTE)
    table("dtypes", {**{g: " ".join(v) for g, v in DTYPE_GROUPS.items()}, "names": " ".join(DTYPES)})
    table("home, amp, operator", {"home": " ".join(HOMES), "amp": " ".join(AMP), "operator": " ".join(OPERATORS)})
    table("errors", CODES)
    known = {
        "elementwise functions": (f for f in FUNCTIONS if f not in INTERNAL), "metadata and checks": META,
        "structured functions": TENSOR, "shape rules": SHAPES, "types": (b.value for b in Base),
    }  # fmt: skip
    for title, names in known.items():
        print(f"\n{title}")
        print(textwrap.fill(" ".join(names), 100, initial_indent="  ", subsequent_indent="  "))
    return 0
