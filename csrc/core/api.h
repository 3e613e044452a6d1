// Export macro of libtensorplay. Knows nothing else.
#pragma once

#if defined(_WIN32)
#if defined(TP_BUILDING)
#define TP_API __declspec(dllexport)
#else
#define TP_API __declspec(dllimport)
#endif
#else
#define TP_API __attribute__((visibility("default")))
#endif
#define TP_LIKELY(x) __builtin_expect(!!(x), 1)
#define TP_UNLIKELY(x) __builtin_expect(!!(x), 0)
