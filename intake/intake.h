/*
 * connectd-intake: reads Basecamp and writes nothing there. It follows the
 * account's event feed, decides what may be acted on, and reads threads for
 * workers. What all its subjects share is here; handlers are in intake.c.
 */
#ifndef INTAKE_INTAKE_H
#define INTAKE_INTAKE_H

#include "common/role.h"
#include "intake/api.h"
#include "intake/backlog.h"
#include "intake/policy.h"

struct feed;
struct admission;
struct threads;
struct lists;

struct intake {
	struct role *role;
	struct peer *ledger;
	struct api api;
	struct policy *policy; /* newest generation, NULL before the first */
	struct backlog backlog;
	struct feed *feed;
	struct admission *admission;
	struct threads *threads;
	struct lists *lists; /* what is known of projects and chats */
};

#endif
