#!/bin/sh
# Builds and runs the accuracy program for every instruction set this machine has. Arguments go to the program;
# `--stride 1 --type f32` is the exhaustive run (hours). ISAS="avx2" restricts the sets.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${TMPDIR:-/tmp}/tensorplay-ulp
mkdir -p "$out"
flags="-std=gnu++20 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off -Wall -Wextra -I$root/csrc -I$here"
status=0
for isa in ${ISAS:-baseline avx2 avx512}; do
  case $isa in
    avx2) march=-march=x86-64-v3 needs=avx2 ;;
    avx512) march="-march=x86-64-v4 -mprefer-vector-width=512" needs=avx512vl ;;
    *) march="" needs=. ;;
  esac
  grep -q "$needs" /proc/cpuinfo || { echo "$isa: not on this processor"; continue; }
  if [ -n "$(find "$root"/csrc/kernels/vecmath* "$root/csrc/core/complex.h" "$here" -newer "$out/ulp_$isa" 2>&1)" ]; then
    ${CXX:-g++} $flags $march -DTP_ISA="$isa" -DTP_ISA_NAME="\"$isa\"" "$here/ulp.cpp" -o "$out/ulp_$isa" || exit 1
  fi
  "$out/ulp_$isa" "$@" || status=1
done
exit $status
