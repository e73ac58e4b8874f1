/* A preloaded library that fails chosen system calls under one folder, or records those that change it.

   Calls are counted by kind and, while a fault is armed, the nth of its kind under the folder fails with an error or, for
   a write, takes half of its bytes. A recording holds every call that changed the folder, in order, with its data.
   Only paths below the folder count: everything else passes through untouched. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { OPEN, READ, WRITE, FSYNC, TRUNCATE, RENAME, UNLINK, RMDIR, MKDIR, SYMLINK, LINK, FLOCK, SCAN, STAT, KINDS };

static const char *const NAMES[KINDS] = {"open",  "read",  "write",   "fsync", "truncate", "rename", "unlink",
                                         "rmdir", "mkdir", "symlink", "link",  "flock",    "scan",   "stat"};
static const int SHORT_WRITE = -1;

static char folder[PATH_MAX];
static int armed_kind = -1, armed_error, recording = -1, report = -1;
static atomic_long left, counts[KINDS];
static pthread_mutex_t recording_lock = PTHREAD_MUTEX_INITIALIZER;

/* What Python calls through ctypes, in the process that is to meet the fault. */

void faults_watch(const char *path) { snprintf(folder, sizeof folder, "%s", path); }

void faults_arm(const char *kind, long nth, int error, const char *report_path) {
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(kind, NAMES[k])) armed_kind = k;
    armed_error = error;
    report = syscall(SYS_openat, AT_FDCWD, report_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    atomic_store(&left, nth);
}

void faults_record(const char *path) {
    recording = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

long faults_count(const char *kind) {
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(kind, NAMES[k])) return atomic_load(&counts[k]);
    return -1;
}

static int below(const char *path) {
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

/* Fill in the absolute path of a name; relative ones are taken from the working folder or an open folder. */
static const char *absolute(int at, const char *path, char *buffer) {
    if (path[0] == '/') return path;
    char base[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return path;
    base[length] = 0;
    if (snprintf(buffer, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return path;
    return buffer;
}

static const char *path_of(int fd, char *buffer) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    buffer[length < 0 ? 0 : length] = 0;
    return buffer;
}

/* Count a call; return the error it has to fail with, SHORT_WRITE, or 0. */
static int met(enum kind kind, const char *path) {
    if (!folder[0] || !below(path)) return 0;
    atomic_fetch_add(&counts[kind], 1);
    if (armed_kind != (int)kind || atomic_fetch_sub(&left, 1) != 1) return 0;
    dprintf(report, "%s\n", path);
    return armed_error;
}

/* A record: a line of "kind length\tpath[\tother]\toffset", then `length` bytes of data. */
static void record(const char *kind, const char *path, const char *other, long offset, const void *data, size_t length) {
    if (recording < 0 || (!below(path) && !(other && below(other)))) return;
    int before = errno;
    pthread_mutex_lock(&recording_lock);
    dprintf(recording, "%s\t%zu\t%s\t%s\t%ld\n", kind, length, path, other ? other : "", offset);
    for (size_t done = 0; done < length;)
        done += syscall(SYS_write, recording, (const char *)data + done, length - done);
    pthread_mutex_unlock(&recording_lock);
    errno = before;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL(kind, path)                      \
    do {                                      \
        int fault = met(kind, path);          \
        if (fault) return errno = fault, -1;  \
    } while (0)

static int opened(int at, const char *name, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    const char *path = absolute(at, name, buffer);
    FAIL(OPEN, path);
    int fresh = (flags & O_CREAT) && syscall(SYS_faccessat, at, name, F_OK) < 0;
    int fd = syscall(SYS_openat, at, name, flags, mode);
    if (fd >= 0 && fresh) record("create", path, NULL, 0, NULL, 0);
    if (fd >= 0 && !fresh && (flags & O_TRUNC)) record("truncate", path, NULL, 0, NULL, 0);
    return fd;
}

#define MODE                                                  \
    mode_t mode = 0;                                          \
    if (flags & (O_CREAT | O_TMPFILE)) {                      \
        va_list arguments;                                    \
        va_start(arguments, flags);                           \
        mode = va_arg(arguments, mode_t);                     \
        va_end(arguments);                                    \
    }

int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return opened(at, path, flags | O_LARGEFILE, mode); }

ssize_t read(int fd, void *data, size_t length) {
    char buffer[PATH_MAX];
    if (folder[0]) FAIL(READ, path_of(fd, buffer));
    return syscall(SYS_read, fd, data, length);
}

ssize_t write(int fd, const void *data, size_t length) {
    char buffer[PATH_MAX];
    if (!folder[0]) return syscall(SYS_write, fd, data, length);
    const char *path = path_of(fd, buffer);
    int fault = met(WRITE, path);
    if (fault == SHORT_WRITE) length = length > 1 ? length / 2 : length;
    else if (fault) return errno = fault, -1;
    ssize_t written = syscall(SYS_write, fd, data, length);
    if (written > 0) record("write", path, NULL, lseek(fd, 0, SEEK_CUR) - written, data, written);
    return written;
}

static int flushed(int fd, long call) {
    char buffer[PATH_MAX];
    if (!folder[0]) return syscall(call, fd);
    const char *path = path_of(fd, buffer);
    FAIL(FSYNC, path);
    int result = syscall(call, fd);
    if (!result) record("fsync", path, NULL, 0, NULL, 0);
    return result;
}

int fsync(int fd) { return flushed(fd, SYS_fsync); }
int fdatasync(int fd) { return flushed(fd, SYS_fdatasync); }

static int cut(int fd, off_t length) {
    char buffer[PATH_MAX];
    if (!folder[0]) return syscall(SYS_ftruncate, fd, length);
    const char *path = path_of(fd, buffer);
    FAIL(TRUNCATE, path);
    int result = syscall(SYS_ftruncate, fd, length);
    if (!result) record("truncate", path, NULL, length, NULL, 0);
    return result;
}

int ftruncate(int fd, off_t length) { return cut(fd, length); }
int ftruncate64(int fd, off64_t length) { return cut(fd, length); }

int rename(const char *from, const char *to) {
    char one[PATH_MAX], two[PATH_MAX];
    const char *source = absolute(AT_FDCWD, from, one), *target = absolute(AT_FDCWD, to, two);
    FAIL(RENAME, target);
    int result = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (!result) record("rename", source, target, 0, NULL, 0);
    return result;
}

static int removed(int at, const char *name, int flags) {
    char buffer[PATH_MAX];
    const char *path = absolute(at, name, buffer);
    FAIL(flags & AT_REMOVEDIR ? RMDIR : UNLINK, path);
    int result = syscall(SYS_unlinkat, at, name, flags);
    if (!result) record("unlink", path, NULL, 0, NULL, 0);
    return result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }

int mkdir(const char *name, mode_t mode) {
    char buffer[PATH_MAX];
    const char *path = absolute(AT_FDCWD, name, buffer);
    FAIL(MKDIR, path);
    int result = syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    if (!result) record("mkdir", path, NULL, 0, NULL, 0);
    return result;
}

int symlink(const char *content, const char *name) {
    char buffer[PATH_MAX];
    const char *path = absolute(AT_FDCWD, name, buffer);
    FAIL(SYMLINK, path);
    int result = syscall(SYS_symlinkat, content, AT_FDCWD, name);
    if (!result) record("symlink", path, NULL, 0, content, strlen(content));
    return result;
}

static int linked(int at_from, const char *from, int at_to, const char *to, int flags) {
    char one[PATH_MAX], two[PATH_MAX];
    const char *source = absolute(at_from, from, one), *target = absolute(at_to, to, two);
    FAIL(LINK, target);
    int result = syscall(SYS_linkat, at_from, from, at_to, to, flags);
    if (!result) record("link", source, target, 0, NULL, 0);
    return result;
}

int link(const char *from, const char *to) { return linked(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int at_from, const char *from, int at_to, const char *to, int flags) {
    return linked(at_from, from, at_to, to, flags);
}

int flock(int fd, int operation) {
    char buffer[PATH_MAX];
    if (folder[0]) FAIL(FLOCK, path_of(fd, buffer));
    return syscall(SYS_flock, fd, operation);
}

DIR *opendir(const char *name) {
    REAL(opendir);
    char buffer[PATH_MAX];
    int fault = met(SCAN, absolute(AT_FDCWD, name, buffer));
    if (fault) return errno = fault, NULL;
    return real(name);
}

#define STAT_OF_PATH(function, type)                          \
    int function(const char *name, type *status) {            \
        REAL(function);                                       \
        char buffer[PATH_MAX];                                \
        FAIL(STAT, absolute(AT_FDCWD, name, buffer));         \
        return real(name, status);                            \
    }
STAT_OF_PATH(stat, struct stat)
STAT_OF_PATH(lstat, struct stat)
STAT_OF_PATH(stat64, struct stat64)
STAT_OF_PATH(lstat64, struct stat64)
