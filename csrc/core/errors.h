// Errors a user can meet. Python maps each kind to one exception type (python/module.cpp); nothing here knows Python.
#pragma once
#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "core/api.h"

namespace tp {

enum class ErrorKind { Value, Type, Index, Runtime, NotImplemented, Memory, Buffer };

class TP_API Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ~Error() override;  // anchors the type's identity in libtensorplay
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

/// A Python exception is already set (a hook or a host callback raised); the binding layer returns without touching it.
class TP_API HostError : public std::exception {
 public:
  HostError() = default;
  ~HostError() override;
  const char* what() const noexcept override { return "an error is pending in the host language"; }
};

[[noreturn]] TP_API void fail_with(ErrorKind kind, std::string message);

template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  fail_with(kind, text.str());
}
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void value_error(const Parts&... parts) {
  fail(ErrorKind::Value, parts...);
}
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void type_error(const Parts&... parts) {
  fail(ErrorKind::Type, parts...);
}
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void index_error(const Parts&... parts) {
  fail(ErrorKind::Index, parts...);
}
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void runtime_error(const Parts&... parts) {
  fail(ErrorKind::Runtime, parts...);
}
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void not_implemented(const Parts&... parts) {
  fail(ErrorKind::NotImplemented, parts...);
}

}  // namespace tp
