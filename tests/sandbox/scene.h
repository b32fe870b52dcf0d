/*
 * What a walled process may find around it, made before its walls are: three
 * directories (its own and two others), a process and sockets outside.
 */
#ifndef TESTS_SANDBOX_SCENE_H
#define TESTS_SANDBOX_SCENE_H

#include <event2/event.h>
#include <limits.h>
#include <sys/types.h>

struct scene {
	uid_t uid; /* of those who act; not root */
	gid_t gid;
	char root[64];
	char inside[PATH_MAX];   /* the directory that is allowed */
	char outside[PATH_MAX];  /* one that is not */
	char readable[PATH_MAX]; /* one that a worker may read */
	char inside_file[PATH_MAX];
	char outside_file[PATH_MAX];
	char readable_file[PATH_MAX];
	pid_t victim;      /* a process of the same user, outside */
	int listener;      /* TCP on loopback, outside */
	unsigned int port; /* its port */
	int abstract;      /* abstract unix listener, outside */
	char abstract_name[64];
	/* Open before the walls, for acts that need one. */
	int file, tcp, udp, local, pair[2];
	struct event_base *base;
};

extern struct scene scene;

/* As root the actors become "nobody". Exits the program on failure. */
void scene_make(void);
void scene_remove(void);
/* Take on the actors' ids, in a child. */
void scene_become(void);

/*
 * Run ACT in a child of its own, after ENTER has put up the walls. What came
 * of it: 0 or the errno that ACT returned, or SCENE_SIGNAL + n.
 */
#define SCENE_SIGNAL 1000
#define SCENE_NO_WALLS 2000 /* ENTER failed; it said why */
int scene_try(int (*enter)(const void *arg), const void *arg, int (*act)(void));
/* 0 when RESULT is the EXPECTED one; else 1, and a line that says so. */
int scene_expect(const char *who, const char *what, int expected, int result);

#endif
