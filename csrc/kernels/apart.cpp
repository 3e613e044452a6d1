// The threads that long library calls run on, and what becomes of them when nobody waits any more.
#include "kernels/apart.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <unistd.h>
#endif

#include "core/parallel_for.h"

namespace tp::kernels {
namespace {

thread_local Watch* watch = nullptr;

struct Work {
  std::function<int(void* const*)> call;
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::vector<void*> at;
  std::mutex lock;
  std::condition_variable changed;
  bool ended = false;
  int result = 0;
};

#if defined(__unix__) || defined(__APPLE__)
// A process that ends takes memory from under a library whose call still runs. Threads of such calls are stopped first, for
// good, by a signal that is theirs alone: waiting for them could take a minute.
constexpr int kStop = SIGURG;

struct Running {
  std::mutex lock;
  std::vector<pthread_t> threads;
};
Running* running = nullptr;  // never freed: threads outlive static objects

void stay(int) {
  for (;;) pause();
}
void stop_all() {
  const std::lock_guard hold(running->lock);
  if (running->threads.empty()) return;
  struct sigaction action{};
  action.sa_handler = stay;
  sigaction(kStop, &action, nullptr);
  for (const pthread_t t : running->threads) pthread_kill(t, kStop);
}

class Listed {
 public:
  Listed() {
    const std::lock_guard hold(running->lock);
    running->threads.push_back(pthread_self());
  }
  ~Listed() {
    const std::lock_guard hold(running->lock);
    auto& all = running->threads;
    all.erase(std::find_if(all.begin(), all.end(), [](pthread_t t) { return pthread_equal(t, pthread_self()); }));
  }
  Listed(const Listed&) = delete;
};

/// Signals of the program go to its other threads.
class Deaf {
 public:
  Deaf() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, kStop);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~Deaf() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Deaf(const Deaf&) = delete;

 private:
  sigset_t before_;
};

void prepare() {
  static const bool once = [] {
    running = new Running;
    std::atexit(stop_all);
    pthread_atfork(nullptr, nullptr, [] { running = new Running; });  // the child has none of the threads
    return true;
  }();
  (void)once;
}
#else
struct Listed {};
struct Deaf {};
void prepare() {}
#endif

void run(Work& work) {
  const Listed listed;
  const int result = work.call(work.at.data());
  const std::lock_guard hold(work.lock);
  work.result = result;
  work.ended = true;
  work.changed.notify_one();
}

/// Throws where the caller should end; whether another thread's caller did.
bool given_up() {
  if (watch && watch->caller != std::this_thread::get_id()) return watch->ended.load(std::memory_order_relaxed);
  try {
    if (poll_interrupt) poll_interrupt();
  } catch (...) {
    if (watch) watch->ended.store(true, std::memory_order_relaxed);
    throw;
  }
  return false;
}

}  // namespace

Watched::Watched(Watch* w) : before_(watch) { watch = w; }
Watched::~Watched() { watch = before_; }

int detail::run_apart(std::initializer_list<Array> arrays, std::function<int(void* const*)> call) {
  prepare();
  const auto work = std::make_shared<Work>();
  work->call = std::move(call);
  for (const Array& a : arrays) {
    work->memory.push_back(std::make_unique_for_overwrite<std::byte[]>(a.bytes));
    work->at.push_back(work->memory.back().get());
    if (a.use & Array::In) std::memcpy(work->at.back(), a.at, a.bytes);
  }
  try {
    const Deaf deaf;  // inherited by the thread
    std::thread([work] { run(*work); }).detach();
  } catch (const std::system_error&) {  // no thread to be had: the call runs here, and is not ended
    work->result = work->call(work->at.data());
    work->ended = true;
  }
  for (std::unique_lock hold(work->lock); !work->ended;) {
    if (work->changed.wait_for(hold, std::chrono::milliseconds(20), [&] { return work->ended; })) break;
    hold.unlock();
    if (given_up()) return 0;
    hold.lock();
  }
  std::size_t i = 0;
  for (const Array& a : arrays) {
    if (a.use & Array::Out) std::memcpy(a.at, work->at[i], a.bytes);
    ++i;
  }
  return work->result;
}

}  // namespace tp::kernels
