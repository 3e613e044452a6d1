// What ops are called where users meet them. Asked when an error or a type of results is made; knows no op by name.
#pragma once
#include <string>
#include <string_view>

#include "python/args.h"

namespace tp::python {

/// The tables of a library, tensorplay's own first: which function stands under which name.
void note_names(const Registry& registry);

/// Whether a library other than the first has an op of that name.
bool defined_outside(std::string_view op);

/// `svd_driver` is "linalg.svd": an entry that is for internal use goes by the function it stands behind, if there is one.
std::string public_name(std::string_view op);

/// The signature of `spec` under that name.
std::string public_signature(const Spec& spec);

/// `text` as the message of a call of `op`: names of internal ops that lead it are taken away, the public one is put there.
std::string public_text(std::string_view op, std::string_view text);

}  // namespace tp::python
