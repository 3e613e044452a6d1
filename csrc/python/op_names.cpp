// Names of ops in messages, derived from the tables of functions: what is internal there has another name outside.
#include "python/op_names.h"

#include <cctype>
#include <cstring>
#include <map>
#include <set>

namespace tp::python {
namespace {

std::vector<Registry::Table>& tables() {
  static auto* all = new std::vector<Registry::Table>;
  return *all;
}

struct Names {
  std::size_t read = 0;  // tables
  std::map<std::string, std::string, std::less<>> outside;  // internal entry -> public name; empty: it has none
};

std::size_t own_tables = 0;

bool is_internal(const Registry::Table& t) { return !std::strcmp(t.home, "internal"); }

// Made when the first message asks. A function of the internal table that stands in another too is what users call.
const Names& names() {
  static auto* n = new Names;
  if (n->read == tables().size()) return *n;
  std::map<PyCFunction, std::string> functions;
  std::set<std::string> shown;
  for (const Registry::Table& t : tables())
    if (!is_internal(t))
      for (const PyMethodDef* f = t.functions; f->ml_name; ++f) {
        // PyTorch's way: nn.functional's are known without their home.
        const bool bare = !*t.home || !std::strcmp(t.home, "nn.functional");
        functions.emplace(f->ml_meth, bare ? f->ml_name : std::string(t.home) + "." + f->ml_name);
        shown.insert(f->ml_name);
      }
  for (const Registry::Table& t : tables())
    if (is_internal(t))
      for (const PyMethodDef* f = t.functions; f->ml_name; ++f) {
        const auto found = functions.find(f->ml_meth);
        if (found != functions.end())
          n->outside[f->ml_name] = found->second;
        else if (!shown.count(f->ml_name))
          n->outside.emplace(f->ml_name, "");
      }
  n->read = tables().size();
  return *n;
}

// The word before ": " at the front of a message; empty: there is none.
std::string_view leading_word(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || text[n] == '_' || text[n] == '.'))
    ++n;
  return text.substr(n, 2) == ": " ? text.substr(0, n) : std::string_view();
}

// Whether a message says already which op it is about: "add: ...", "add_: ...", "add(...".
bool leads(std::string_view text, std::string_view op) {
  if (op.empty() || text.substr(0, op.size()) != op) return false;
  text.remove_prefix(op.size());
  if (text.substr(0, 1) == "_") text.remove_prefix(1);
  return !text.empty() && (text[0] == ':' || text[0] == '(' || text[0] == ' ');
}

}  // namespace

void note_names(const Registry& registry) {
  tables().insert(tables().end(), registry.functions().begin(), registry.functions().end());
  if (!own_tables) own_tables = tables().size();
}

bool defined_outside(std::string_view op) {
  for (std::size_t i = own_tables; i < tables().size(); ++i)
    for (const PyMethodDef* f = tables()[i].functions; f->ml_name; ++f)
      if (f->ml_name == op) return true;
  return false;
}

std::string public_name(std::string_view op) {
  const auto found = names().outside.find(op);
  return found == names().outside.end() || found->second.empty() ? std::string(op) : found->second;
}

std::string public_signature(const Spec& spec) {
  const std::string_view text = spec.signature;
  const std::size_t arguments = text.find('(');
  return arguments == text.npos ? std::string(text) : public_name(spec.op) + std::string(text.substr(arguments));
}

std::string public_text(std::string_view op, std::string_view text) {
  const std::string name = public_name(op);
  for (std::string_view word; !(word = leading_word(text)).empty() && word != name;) {
    // In-place forms have a _ more than their entry, also where its name ends with one.
    const std::string_view entry = word.back() == '_' ? word.substr(0, word.size() - 1) : word;
    const bool twice = !entry.empty() && entry != word && entry.back() == '_' && entry == op;
    if (!twice && !names().outside.count(word) && !names().outside.count(entry)) break;
    text.remove_prefix(word.size() + 2);
  }
  return leads(text, name) ? std::string(text) : name + ": " + std::string(text);
}

}  // namespace tp::python
