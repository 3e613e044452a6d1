// The claim-based pool: chunks are taken from an atomic counter, so a late worker costs nothing and the caller never waits
// for one that has not started. After fork the child starts with an empty pool.
#include "core/parallel_for.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
#if defined(__linux__) && !defined(TP_PORTABLE)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace tp {

void (*poll_interrupt)() = nullptr;

namespace detail {

std::atomic<int> g_threads = 0;  // 0: not asked for yet

namespace {

// Runs [begin, end) in pieces that grow to some milliseconds each. Between them `go_on` may end the run: false, or a throw.
template <class GoOn>
void run_pieces(RangeFn fn, void* ctx, std::int64_t begin, std::int64_t end, std::int64_t grain, const GoOn& go_on) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kEnough = std::chrono::milliseconds(4);
  std::int64_t piece = (grain + 63) / 64 * 64;
  auto before = Clock::now();
  while (end - begin > piece) {
    fn(ctx, begin, begin + piece);
    begin += piece;
    const auto now = Clock::now();
    if (now - before < kEnough && piece < (std::int64_t(1) << 60)) piece *= 2;
    before = now;
    if (!go_on(now)) return;
  }
  if (begin < end) fn(ctx, begin, end);
}

// What the calling thread does between pieces.
struct Poll {
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
  void operator()(std::chrono::steady_clock::time_point now) {
    if (now - last < std::chrono::milliseconds(30)) return;
    if (poll_interrupt) poll_interrupt();
    last = std::chrono::steady_clock::now();
  }
};

#if defined(__linux__) && !defined(TP_PORTABLE)
int current_cpu() { return sched_getcpu(); }

// Linux puts a worker that wakes while every CPU is busy beside its caller, and leaves it there for many milliseconds after
// another CPU fell idle. Asking for any other CPU moves it at once.
void leave_cpu(int cpu) {
  cpu_set_t allowed;
  if (sched_getcpu() != cpu || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);
  sched_setaffinity(0, sizeof allowed, &allowed);
}
#else
int current_cpu() { return 0; }
void leave_cpu(int) {}
#endif

struct Job {
  RangeFn fn;
  void* ctx;
  std::int64_t begin, end, chunk, grain;
  std::atomic<std::int64_t> next;
  std::atomic<int> inside{0};  // workers currently looking at this job
  std::atomic<bool> stopped{false};
  std::exception_ptr error;
  std::mutex error_lock;
  std::atomic<int> cpu;  // where the caller runs

  // `poll`: of the calling thread; workers only look whether the run was ended.
  bool run_one(Poll* poll) {
    const std::int64_t b = next.fetch_add(chunk, std::memory_order_relaxed);
    if (b >= end) return false;
    const std::int64_t e = b + chunk < end ? b + chunk : end;
    if (poll)
      cpu.store(current_cpu(), std::memory_order_relaxed);
    else
      leave_cpu(cpu.load(std::memory_order_relaxed));
    try {
      run_pieces(fn, ctx, b, e, grain, [&](auto now) {
        if (poll) (*poll)(now);
        return !stopped.load(std::memory_order_relaxed);
      });
    } catch (...) {
      stopped.store(true, std::memory_order_relaxed);
      std::lock_guard<std::mutex> hold(error_lock);
      if (!error) error = std::current_exception();
      next.store(end, std::memory_order_relaxed);
    }
    return true;
  }
};

struct Pool {
  std::mutex lock;
  std::condition_variable wake;
  Job* job = nullptr;  // guarded by lock; workers enter a job under it
  std::uint64_t ticket = 0;
  std::atomic<std::uint64_t> seen_ticket{0};
  int workers = 0;

  void ensure(int n) {
    while (workers < n) {
      ++workers;
      std::thread([this] { work(); }).detach();
    }
  }
  void work() {
    std::uint64_t last = 0;
    for (;;) {
      // A short spin catches back-to-back regions without a futex wake-up.
      for (int i = 0; i < 2000 && seen_ticket.load(std::memory_order_acquire) == last; ++i) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      Job* j = nullptr;
      {
        std::unique_lock<std::mutex> hold(lock);
        wake.wait(hold, [&] { return job != nullptr && ticket != last; });
        last = ticket;
        j = job;
        j->inside.fetch_add(1, std::memory_order_relaxed);
      }
      while (j->run_one(nullptr)) {
      }
      j->inside.fetch_sub(1, std::memory_order_release);
    }
  }
};

Pool* g_pool = nullptr;
thread_local bool t_inside = false;
std::mutex g_region;  // one region at a time; a second caller runs serially

void after_fork_child() {
  g_pool = nullptr;  // the parent's workers do not exist here; its Pool is left behind unreachable
  new (&g_region) std::mutex;
}

Pool& pool() {
  if (!g_pool) {
    g_pool = new Pool;
#if defined(__unix__) || defined(__APPLE__)
    static bool registered = (pthread_atfork(nullptr, nullptr, after_fork_child), true);
    (void)registered;
#endif
  }
  return *g_pool;
}

}  // namespace

void run_parallel(std::int64_t begin, std::int64_t end, std::int64_t grain, RangeFn fn, void* ctx) {
  const int threads = num_threads();
  const std::int64_t n = end - begin;
  if (t_inside || n <= grain) return fn(ctx, begin, end);
  Poll poll;
  if (threads <= 1 || !g_region.try_lock())
    return run_pieces(fn, ctx, begin, end, grain, [&](auto now) {
      poll(now);
      return true;
    });
  std::lock_guard<std::mutex> region(g_region, std::adopt_lock);
  // Four chunks a thread absorb a busy neighbour; chunk borders depend on the range and grain alone.
  std::int64_t chunk = (n + threads * 4 - 1) / (threads * 4);
  chunk = chunk < grain ? grain : (chunk + 63) / 64 * 64;
  Job job{fn, ctx, begin, end, chunk, grain, {begin}, {0}, {false}, nullptr, {}, {current_cpu()}};
  Pool& p = pool();
  {
    std::lock_guard<std::mutex> hold(p.lock);
    p.ensure(threads - 1);
    p.job = &job;
    ++p.ticket;
    p.seen_ticket.store(p.ticket, std::memory_order_release);
  }
  if (threads == 2)
    p.wake.notify_one();
  else
    p.wake.notify_all();
  t_inside = true;
  while (job.run_one(&poll)) {
  }
  t_inside = false;
  {
    std::lock_guard<std::mutex> hold(p.lock);
    p.job = nullptr;  // nobody can enter any more
  }
  while (job.inside.load(std::memory_order_acquire) != 0) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace detail

int num_threads() {
  int n = detail::g_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    if (const char* s = std::getenv("TENSORPLAY_NUM_THREADS")) n = std::atoi(s);
    if (n <= 0)
      if (const char* s = std::getenv("OMP_NUM_THREADS")) n = std::atoi(s);
    if (n <= 0) n = int(std::thread::hardware_concurrency());
    if (n <= 0) n = 1;
    int unset = 0;  // what another thread set meanwhile stays
    if (!detail::g_threads.compare_exchange_strong(unset, n, std::memory_order_relaxed)) n = unset;
  }
  return n;
}

void set_num_threads(int n) { detail::g_threads.store(n < 1 ? 1 : n, std::memory_order_relaxed); }

}  // namespace tp
