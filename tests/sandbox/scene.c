#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <netinet/in.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/process.h"
#include "tests/sandbox/scene.h"

#define NOBODY 65534
#define NO_WALLS_CODE 255

struct scene scene;

static void
make_dir(char *out, const char *name)
{
	(void)snprintf(out, PATH_MAX, "%s/%s", scene.root, name);
	if (mkdir(out, 0700) == -1 || chown(out, scene.uid, scene.gid) == -1)
		err(1, "%s", out);
}

static void
make_file(char *out, const char *dir)
{
	int fd;

	if (snprintf(out, PATH_MAX, "%s/file", dir) >= PATH_MAX)
		errx(1, "%s: too long", dir);
	fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1 || write(fd, "text\n", 5) != 5 ||
	    fchown(fd, scene.uid, scene.gid) == -1)
		err(1, "%s", out);
	(void)close(fd);
}

/* Something to run, called "true". */
static void
copy_program(const char *dir)
{
	char to[PATH_MAX + 16];
	char buffer[65536];
	ssize_t n;
	int in = open("/bin/true", O_RDONLY | O_CLOEXEC), out;

	(void)snprintf(to, sizeof(to), "%s/true", dir);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (in == -1 || out == -1 || fchmod(out, 0755) == -1)
		err(1, "%s", to);
	while ((n = read(in, buffer, sizeof(buffer))) > 0) {
		if (write(out, buffer, (size_t)n) != n)
			err(1, "%s", to);
	}
	(void)close(in);
	(void)close(out);
}

static void
make_listeners(void)
{
	struct sockaddr_in in = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(in);

	scene.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(scene.listener, (struct sockaddr *)&in, sizeof(in)) == -1 ||
	    listen(scene.listener, 64) == -1 ||
	    getsockname(scene.listener, (struct sockaddr *)&in, &len) == -1)
		err(1, "TCP listener");
	scene.port = ntohs(in.sin_port);

	(void)snprintf(scene.abstract_name, sizeof(scene.abstract_name),
	    "connectd-walls-%d", (int)getpid());
	(void)snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s",
	    scene.abstract_name);
	scene.abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(scene.abstract, (struct sockaddr *)&un, sizeof(un)) == -1 ||
	    listen(scene.abstract, 64) == -1)
		err(1, "abstract listener");
}

static void
make_victim(void)
{
	scene.victim = fork();
	if (scene.victim == -1)
		err(1, "fork");
	if (scene.victim == 0) {
		scene_become();
		for (;;)
			(void)pause();
	}
}

void
scene_become(void)
{
	struct error e;

	if (process_become(scene.uid, scene.gid, &e) == -1)
		errx(1, "%s", e.text);
}

void
scene_make(void)
{
	scene.uid = geteuid() == 0 ? NOBODY : geteuid();
	scene.gid = geteuid() == 0 ? NOBODY : getegid();
	(void)snprintf(scene.root, sizeof(scene.root), "/tmp/walls-XXXXXX");
	if (mkdtemp(scene.root) == NULL || chmod(scene.root, 0755) == -1)
		err(1, "%s", scene.root);
	make_dir(scene.inside, "inside");
	make_dir(scene.outside, "outside");
	make_file(scene.inside_file, scene.inside);
	make_file(scene.outside_file, scene.outside);
	make_dir(scene.readable, "readable");
	make_file(scene.readable_file, scene.readable);
	copy_program(scene.inside);
	copy_program(scene.outside);
	copy_program(scene.readable);
	make_listeners();
	make_victim();
}

/* Anew for each act: what one does to them the next must not find. */
static void
open_descriptors(void)
{
	scene.file = open(scene.outside_file, O_RDWR | O_CLOEXEC);
	scene.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	scene.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	scene.local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (scene.file == -1 || scene.tcp == -1 || scene.udp == -1 ||
	    scene.local == -1 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, scene.pair) ==
		-1)
		err(1, "scene");
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
scene_remove(void)
{
	(void)kill(scene.victim, SIGKILL);
	(void)waitpid(scene.victim, NULL, 0);
	(void)nftw(scene.root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int
scene_try(int (*enter)(const void *arg), const void *arg, int (*act)(void))
{
	pid_t pid;
	int status;

	(void)fflush(NULL);
	pid = fork();
	if (pid == -1)
		err(1, "fork");
	if (pid == 0) {
		scene_become();
		open_descriptors();
		if (enter(arg) == -1)
			_exit(NO_WALLS_CODE);
		_exit(act());
	}
	if (waitpid(pid, &status, 0) == -1)
		err(1, "waitpid");
	if (WIFSIGNALED(status))
		return SCENE_SIGNAL + WTERMSIG(status);
	if (WEXITSTATUS(status) == NO_WALLS_CODE)
		return SCENE_NO_WALLS;
	return WEXITSTATUS(status);
}

static void
describe(int result, char *out, size_t size)
{
	if (result == SCENE_NO_WALLS)
		(void)snprintf(out, size, "no walls");
	else if (result == 0)
		(void)snprintf(out, size, "allowed");
	else if (result > SCENE_SIGNAL)
		(void)snprintf(out, size, "killed by %s",
		    strsignal(result - SCENE_SIGNAL));
	else
		(void)snprintf(out, size, "%s", strerror(result));
}

int
scene_expect(const char *who, const char *what, int expected, int result)
{
	char should[64], did[64];

	if (result == expected)
		return 0;
	describe(expected, should, sizeof(should));
	describe(result, did, sizeof(did));
	(void)printf("%s: %s: %s, expected: %s\n", who, what, did, should);
	return 1;
}
