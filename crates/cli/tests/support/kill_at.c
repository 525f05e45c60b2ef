/* kill_at N COUNT COMMAND...
 *
 * Runs a command and kills it with SIGKILL at its N-th system call that can change a file, before that call does anything; with 0 it is
 * never killed. Writes to the file COUNT how many such calls there were. Exits as the command does, with 137 where it was killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the headers of the kernel, whose names it shares. */
long ptrace(int request, ...);

static const long calls[] = {
    SYS_openat, SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_symlinkat,
    SYS_unlinkat, SYS_mkdirat, SYS_ftruncate, SYS_truncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_fchmod, SYS_fchmodat,
    SYS_copy_file_range, SYS_sendfile,
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_rename, SYS_link, SYS_symlink, SYS_unlink, SYS_mkdir, SYS_rmdir, SYS_chmod,
#endif
};
#define CALLS (sizeof calls / sizeof *calls)

static int changes(const struct ptrace_syscall_info *info) {
  long number = (long)info->seccomp.nr;
  const __u64 *args = info->seccomp.args;
  switch (number) {
  case SYS_openat: return (args[2] & (O_CREAT | O_TRUNC)) != 0;
#ifdef SYS_open
  case SYS_open: return (args[1] & (O_CREAT | O_TRUNC)) != 0;
#endif
  /* What is said to people changes no file. */
  case SYS_write: case SYS_writev: return args[0] > 2;
  default: return 1;
  }
}

static void trace_calls(void) {
  struct sock_filter filter[CALLS + 3];
  size_t at = 0;
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t call = 0; call < CALLS; call++)
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[call], CALLS - call, 0);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  struct sock_fprog program = {.len = (unsigned short)at, .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(125);
}

int main(int argc, char **argv) {
  if (argc < 4) return 125;
  long wanted = atol(argv[1]), count = 0;
  int status = 0, outcome = 137;
  pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(125);
    raise(SIGSTOP);
    trace_calls();
    execvp(argv[3], argv + 3);
    _exit(125);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 125;
  long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, options)) return 125;
  ptrace(PTRACE_CONT, child, NULL, NULL);
  for (;;) {
    pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == child && WIFEXITED(status)) outcome = WEXITSTATUS(status);
      continue;
    }
    long signal = WSTOPSIG(status);
    if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8))) {
      struct ptrace_syscall_info info;
      if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0 && changes(&info) && ++count == wanted)
        kill(child, SIGKILL);
    }
    /* Stops that are the tracer's own are no signals of the command. */
    if (signal == SIGTRAP || signal == SIGSTOP) signal = 0;
    if (!(wanted && count >= wanted)) ptrace(PTRACE_CONT, thread, NULL, signal);
  }
  FILE *file = fopen(argv[2], "w");
  if (file) {
    fprintf(file, "%ld\n", count);
    fclose(file);
  }
  return outcome;
}
