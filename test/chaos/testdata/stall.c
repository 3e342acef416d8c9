// A library that the loader puts in front of the C library of a server. While the file that
// DOCENT_STALL names exists, calls that write or sync the transaction log wait. The first call that
// waits writes a byte to that file, so that the test sees that the disk stands still.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int is_log(int fd) {
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return 0;
	path[n] = 0;
	return strstr(path, "/version-2/log.") != NULL;
}

static void note(const char *file) {
	int fd = open(file, O_WRONLY); // not created again if the stall is over
	if (fd < 0)
		return;
	syscall(SYS_write, fd, "x", 1);
	close(fd);
}

static void wait_for_disk(int fd) {
	struct stat st;
	const char *file = getenv("DOCENT_STALL");
	if (file == NULL || stat(file, &st) != 0 || !is_log(fd))
		return;
	if (st.st_size == 0)
		note(file);
	while (stat(file, &st) == 0)
		usleep(5000);
}

int fsync(int fd) {
	wait_for_disk(fd);
	return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
	wait_for_disk(fd);
	return syscall(SYS_fdatasync, fd);
}

ssize_t write(int fd, const void *buffer, size_t n) {
	wait_for_disk(fd);
	return syscall(SYS_write, fd, buffer, n);
}

ssize_t pwrite64(int fd, const void *buffer, size_t n, off64_t offset) {
	wait_for_disk(fd);
	return syscall(SYS_pwrite64, fd, buffer, n, offset);
}
