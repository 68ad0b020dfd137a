#include "abort_guard.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace taciturn {
namespace {

constexpr int exit_code = 2;

// The handler may use nothing but memory that is there already, and write and _exit.
char line[2048];
std::size_t length = 0;
bool is_guarded = false;
struct sigaction former;

extern "C" void report_abort(int) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, length);
  ::_exit(exit_code);
}

}  // namespace

void guard_aborts(std::string_view text) {
  length = std::min(text.size(), sizeof line - 1);
  std::copy_n(text.data(), length, line);
  line[length++] = '\n';
  if (is_guarded) return;
  struct sigaction action {};
  action.sa_handler = report_abort;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  is_guarded = sigaction(SIGABRT, &action, &former) == 0;
}

void unguard_aborts() {
  if (!is_guarded) return;
  sigaction(SIGABRT, &former, nullptr);
  is_guarded = false;
}

}  // namespace taciturn
