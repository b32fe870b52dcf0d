"""One edit for each rule behind the promises, and the tests of which each
notices it (mutate.py). BEFORE stands exactly once in its file.
"""

import collections

Rule = collections.namedtuple("Rule", "name of file before after tests")

MATRIX = "crash/test_matrix.py::"
TASKS = "crash/test_matrix_tasks.py::"
POISON = "crash/test_poison.py::"
FLUSH = "test_g5_during_the_flush[claude-%s]"


RULES = [
    Rule(name="undecided is asked for again",
         of="R1 R2",
         file="ledger/statements.def",
         before='"SELECT id FROM events WHERE state = \'seen\' AND id > ?"',
         after='"SELECT id FROM events WHERE state = \'never\' AND id > ?"',
         tests=[MATRIX + "test_row[claude-R1]",
                MATRIX + "test_row[claude-R2]"]),
    Rule(name="a pass follows recovery",
         of="R3",
         file="dispatcher/dispatcher.c",
         before="\tdispatcher_attempt_gone(d);\n"
                "\tpass_wanted(d);\n",
         after="\tdispatcher_attempt_gone(d);\n",
         tests=[MATRIX + "test_row[claude-R3]"]),
    Rule(name="exposed at launch is not returned",
         of="R4",
         file="ledger/settle.c",
         before='\tif (s->end->spawn_failed && strcmp(delivery, "exposed") == 0 &&',
         after='\tif (strcmp(delivery, "exposed") == 0 &&',
         tests=[MATRIX + "test_row[claude-R4]",
                MATRIX + "test_row[claude-R4 prompted]"]),
    Rule(name="pulled or acknowledged is unknown",
         of="R5 R6",
         file="ledger/settle.c",
         before="\t\treturn SETTLE_WITHDRAWN;\n"
                "\treturn SETTLE_UNKNOWN;",
         after="\t\treturn SETTLE_WITHDRAWN;\n"
               "\treturn SETTLE_WITHDRAWN;",
         tests=[MATRIX + "test_row[claude-R5]",
                MATRIX + "test_row[claude-R6]"]),
    Rule(name="the whole tree is ended",
         of="R21",
         file="supervisor/tree.c",
         before="\tif (cgroup == TREE_POPULATED || group == TREE_POPULATED)\n"
                "\t\treturn TREE_POPULATED;\n"
                "\treturn cgroup == TREE_EMPTY ? group : cgroup;",
         after="\tif (group == TREE_POPULATED)\n"
               "\t\treturn TREE_POPULATED;\n"
               "\treturn cgroup == TREE_EMPTY ? group : TREE_EMPTY;",
         tests=[MATRIX + "test_r21_with_a_cgroup[claude]"]),
    Rule(name="a reported outcome stands",
         of="R7 R8",
         file="ledger/settle.c",
         before='\tif (strcmp(delivery, "completed") == 0)\n'
                "\t\treturn SETTLE_REPORTED;\n",
         after='\tif (strcmp(delivery, "completed") == 0)\n'
               "\t\treturn SETTLE_WITHDRAWN;\n",
         tests=[MATRIX + "test_row[claude-R7]",
                MATRIX + "test_row[claude-R8]"]),
    Rule(name="a notice is written with the end",
         of="R9",
         file="ledger/settle.c",
         before="\t    lifecycle_ended(l, a, m->attempt) == -1 ||\n",
         after="",
         tests=[MATRIX + "test_row[claude-R9]"]),
    Rule(name="a doubt is shown",
         of="R10 R24 R54 G2 G3 G5 G6",
         file="ledger/statements.def",
         before="STATEMENT(OUTBOX_DOUBT,\n"
                '    "UPDATE outbox SET state = \'indeterminate\', finished_at',
         after="STATEMENT(OUTBOX_DOUBT,\n"
               '    "UPDATE outbox SET state = \'canceled\', refused = 1, finished_at',
         tests=[MATRIX + "test_row[claude-R10]",
                MATRIX + "test_row[claude-R24]",
                MATRIX + "test_row[claude-R54]",
                MATRIX + "test_row[claude-G2 holding before]",
                MATRIX + "test_g3_killed_before_a_refusal_is_recorded[claude]",
                TASKS + "test_g2_still_running[claude-before-indeterminate-0]",
                TASKS + "test_g6_a_retraction[claude-before-indeterminate]",
                MATRIX + FLUSH % "before-indeterminate-killed",
                MATRIX + FLUSH % "before-indeterminate-second signal"]),
    Rule(name="what was posted is adopted",
         of="R11 R23 R53 G2 G5 G6",
         file="outbox/message.c",
         before="strcmp(normal, text) == 0)",
         after="strcmp(normal, text) != 0)",
         tests=[MATRIX + "test_row[claude-R11]",
                MATRIX + "test_row[claude-R23]",
                MATRIX + "test_row[claude-R53]",
                TASKS + "test_g2_still_running[claude-after-sent-1]",
                TASKS + "test_g6_a_retraction[claude-after-sent]",
                MATRIX + FLUSH % "after-sent-killed",
                MATRIX + FLUSH % "after-sent-second signal"]),
    Rule(name="one failed start is tried again, not two",
         of="R13 R15",
         file="ledger/settle.c",
         before="\tif (end->no_retry || earlier > 0)",
         after="\tif (end->no_retry || earlier > 1)",
         tests=[MATRIX + "test_r13_two_failed_starts[claude]",
                MATRIX + "test_r15_the_budget_survives_restarts[claude]"]),
    Rule(name="one failed start is tried again",
         of="R14",
         file="ledger/settle.c",
         before="\t*to = RECORD_ADMITTED;\n"
                "\tif (end->uncharged)",
         after="\t*to = RECORD_BLOCKED;\n"
               "\tif (!end->uncharged)",
         tests=[MATRIX + "test_r14_the_retry_survives_a_restart[claude]"]),
    Rule(name="a process that existed is no failed spawn",
         of="R16",
         file="dispatcher/ask.c",
         before='\ta->spawn_failed = strcmp(m->tree_is.fate, "never_forked") == 0;',
         after="\ta->spawn_failed = true;",
         tests=[MATRIX + "test_r16_a_process_that_existed_is_never_retried[claude]"]),
    Rule(name="nobody recorded is held",
         of="R20",
         file="supervisor/recovery.c",
         before="\t\trecovery_hold(\n"
                '\t\t    r, "it was launched',
         after="\t\trecovery_finish(\n"
               '\t\t    r, FATE_GONE, "it was launched',
         tests=[MATRIX + "test_r20_nothing_recorded[claude]"]),
    Rule(name="a held attempt's files stay",
         of="trap 17",
         file="supervisor/recovery.c",
         before="\t\tsessions_hold(attempts.sessions, r->id);\n",
         after="",
         tests=["crash/test_held.py::test_its_directories_stay"]),
    Rule(name="what its cgroup shows is ended",
         of="R21",
         file="supervisor/recovery.c",
         before="\tif (!proves && populated != 1) {\n",
         after="\tif (!proves) {\n",
         tests=["crash/test_held.py::"
                "test_what_a_cgroup_shows_is_ended[one]"]),
    Rule(name="a missing cgroup proves it",
         of="R20",
         file="supervisor/recovery.c",
         before="\tif (populated == -1 &&\n"
                "\t    (e.code",
         after="\tif (populated != 1 ||\n"
               "\t    (e.code",
         tests=[MATRIX + "test_r20_with_a_cgroup[claude]"]),
    Rule(name="a group without its leader is held",
         of="R21 R22",
         file="supervisor/tree.c",
         before="\t\ttree_finish(tree, TREE_DOUBT,\n"
                '\t\t    "its leader is gone',
         after="\t\ttree_finish(tree, TREE_GONE,\n"
               '\t\t    "its leader is gone',
         tests=[MATRIX + "test_r21_r22_a_group_without_its_leader[claude]"]),
    Rule(name="a tree that is gone is settled",
         of="R21 R22",
         file="supervisor/tree.c",
         before="\tif (look == TREE_EMPTY)\n"
                '\t\ttree_finish(tree, TREE_GONE, "");',
         after="\tif (look == TREE_EMPTY)\n"
               '\t\ttree_finish(tree, tree->is_ours ? TREE_GONE : TREE_DOUBT, "");',
         tests=[MATRIX + "test_r21_r22_a_group_without_its_leader[claude]"]),
    Rule(name="messages come first",
         of="R25",
         file="dispatcher/dispatcher.c",
         before="\tif (d->recovered)\n"
                "\t\tdecisions_look(d);\n"
                "\tpass_wanted(d);\n"
                "}\n",
         after="\trecover_begin(d);\n"
               "\tif (d->recovered)\n"
               "\t\tdecisions_look(d);\n"
               "\tpass_wanted(d);\n"
               "}\n",
         tests=[MATRIX + "test_r25_messages_are_settled_first[claude]"]),
    Rule(name="the prompt is short",
         of="R26",
         file="dispatcher/prompt.c",
         before='\t    "Later prompts may name more',
         after='\t    "Much more could be said of this and that and of much else "\n'
               '\t    "besides, for whoever has time to read it, and some of it will "\n'
               '\t    "perhaps be of use at times, though nobody can tell which of it "\n'
               '\t    "that will be, so here it is in full, as far as it goes, and it "\n'
               '\t    "goes on for longer than it should in any prompt of ours. "\n'
               '\t    "Later prompts may name more',
         tests=[MATRIX + "test_r26_the_prompt_is_within_its_budget[claude]"]),
    Rule(name="what waits is started",
         of="G1",
         file="ledger/statements.def",
         before='    " WHERE e.state IN (\'admitted\', \'queued\') AND e.id > ?"',
         after='    " WHERE e.state IN (\'admitted\') AND e.id > ?"',
         tests=[MATRIX + "test_g1_killed_while_one_waits[claude]"]),
    Rule(name="what is due is claimed",
         of="G3",
         file="ledger/statements.def",
         before='    " WHERE " IS_CLAIMABLE " AND not_before <= ?1 AND id > ?2"\n',
         after='    " WHERE " IS_CLAIMABLE " AND not_before > ?1 AND id > ?2"\n',
         tests=[MATRIX + "test_g3_killed_inside_the_claim[claude]"]),
    Rule(name="a token leaves by its pipe alone",
         of="R3",
         file="ledger/task.c",
         before='\tline_dispatch(a, task_id, m->attempt, m->event_id, "launching", "");',
         after="\tline_dispatch(\n"
               '\t    a, task_id, m->attempt, m->event_id, "launching", a->token);',
         tests=[MATRIX + "test_row[claude-R3]"]),
    Rule(name="what waits joins a live task",
         of="R17",
         file="dispatcher/follow.c",
         before="\tattempt_ask(a, dispatcher_ledger(a->d), &m);\n"
                "}\n"
                "\n"
                "void\n"
                "attempt_expose",
         after="\tm.join.generation++;\n"
               "\tattempt_ask(a, dispatcher_ledger(a->d), &m);\n"
               "}\n"
               "\n"
               "void\n"
               "attempt_expose",
         tests=[TASKS + "test_r17_a_follow_up_joins[claude]"]),
    Rule(name="what nobody saw goes back",
         of="R18",
         file="ledger/settle.c",
         before="\t\treturn SETTLE_RETURNED;\n"
                "\tif",
         after="\t\treturn SETTLE_UNKNOWN;\n"
               "\tif",
         tests=[TASKS + "test_r18_a_sibling_that_was_not_exposed[claude]"]),
    Rule(name="an exposed follow-up is unknown",
         of="R19",
         file="ledger/settle.c",
         before="\t\treturn SETTLE_WITHDRAWN;\n"
                "\treturn SETTLE_UNKNOWN;",
         after="\t\treturn SETTLE_WITHDRAWN;\n"
               "\treturn SETTLE_WITHDRAWN;",
         tests=[TASKS + "test_r19_an_exposed_follow_up[claude]"]),
    Rule(name="a queued record is told of",
         of="R18",
         file="ledger/verdict.c",
         before="\tif (state == RECORD_ADMITTED || state == RECORD_QUEUED)",
         after="\tif (state == RECORD_ADMITTED)",
         tests=[TASKS + "test_r18_a_sibling_that_was_not_exposed[claude]"]),
    Rule(name="a redispatch that waits is admitted by the end",
         of="G4",
         file="ledger/schema.sql",
         before="\tWHERE state = 'completed' AND redispatch_decision IS NOT NULL\n"
                "\tAND content_dropped = 0",
         after="\tWHERE state = 'completed' AND redispatch_decision IS NULL\n"
               "\tAND content_dropped = 0",
         tests=[TASKS + "test_g4_a_redispatch_that_waits[claude]"]),
    Rule(name="an ask that a person has answered is retracted",
         of="R12",
         file="ledger/decision.c",
         before="\t    retraction_decided(l, a, r->event_id) == -1 ||\n",
         after="",
         tests=[TASKS + "test_r12_redispatch_runs_exactly_once[claude]"]),
    Rule(name="a redispatch is a new task",
         of="R12",
         file="ledger/decision.c",
         before="\tif (!r->is_ended)\n"
                "\t\treturn 0;\n"
                "\treturn decision_move(l, a,\n"
                "\t    &(struct move){.event_id = r->event_id,\n"
                "\t\t.to = RECORD_ADMITTED,",
         after="\tif (!r->is_ended)\n"
               "\t\treturn 0;\n"
               "\treturn decision_move(l, a,\n"
               "\t    &(struct move){.event_id = r->event_id,\n"
               "\t\t.to = RECORD_COMPLETED,",
         tests=[TASKS + "test_r12_redispatch_runs_exactly_once[claude]"]),
    Rule(name="a task that was taken away is ended at once",
         of="L7",
         file="dispatcher/dispatcher.c",
         before="\t\tattempt_event(a, EV_SUPERSEDED);",
         after="\t\t(void)a;",
         tests=["integration/test_decide.py::test_a_live_attempt_is_ended_first"]),
    Rule(name="a notice in doubt is no reply",
         of="T55",
         file="outbox/replies.c",
         before="\t\tif (strcmp(r->own[i], m->text) == 0)",
         after='\t\tif (strcmp(r->own[i], "") == 0)',
         tests=["integration/test_adopt.py::test_its_own_reply_is_told_from_a_notice_in_doubt"]),
    Rule(name="a second signal ends at once",
         of="G5",
         file="supervisor/supervisor.c",
         before="\t\tstop_now(sv, 128 + signal);\n",
         after="",
         tests=[MATRIX + "test_g5_second_signal_with_a_live_worker[claude]"]),
    Rule(name="a position follows its records",
         of="promise 3",
         file="intake/feed_walk.c",
         before="\tfeed_happens(arg, EVENT_FULL);\n",
         after="\tfeed_happens(arg, EVENT_RECORDED);\n",
         tests=["test_feed"]),
    Rule(name="nothing is started under a hold",
         of="promise 4",
         file="ledger/task.c",
         before="\tif (is_held)\n"
                '\t\treturn answer_fail(a, "held", "a hold stands");\n',
         after="",
         tests=["test_ledger_hold"]),
    Rule(name="nothing under a hold is offered",
         of="promise 4",
         file="ledger/statements.def",
         before='    " AND NOT EXISTS (SELECT 1 FROM hold_marker)"\n'
                '    " AND NOT " IS_CONVERSATION_BUSY("e")\n',
         after='    " AND NOT " IS_CONVERSATION_BUSY("e")\n',
         tests=["test_ledger_hold"]),
    Rule(name="a second death is the last",
         of="poison",
         file="ledger/quarantine.c",
         before="#define DEATHS_MOST 2",
         after="#define DEATHS_MOST 3",
         tests=[POISON + "test_a_record_that_hangs_the_ledger",
                POISON + "test_a_launch_that_hangs_the_ledger",
                POISON + "test_both_may_die"]),
    Rule(name="an outside kill does not count",
         of="poison",
         file="supervisor/child.c",
         before="\t\tif (end->si_status == own[i])\n"
                "\t\t\treturn true;\n"
                "\t}\n"
                "\treturn false;",
         after="\t\tif (end->si_status == own[i])\n"
               "\t\t\treturn true;\n"
               "\t}\n"
               "\treturn true;",
         tests=[POISON + "test_an_outside_kill_does_not_count"]),
    Rule(name="the disk's fault does not count",
         of="poison",
         file="supervisor/child.c",
         before=" && end->si_status != EXIT_STORAGE;",
         after=";",
         tests=[POISON + "test_the_disks_fault_does_not_count"]),
    Rule(name="a suspect goes alone",
         of="poison",
         file="intake/admission.c",
         before="\ta->is_alone = u->suspect && !in_hand;\n",
         after="",
         tests=[POISON + "test_a_record_that_ends_intake[6]"]),
    Rule(name="a hung role is ended",
         of="poison",
         file="supervisor/watchdog.c",
         before="\tchild_happens(c, CHILD_SILENT);\n",
         after="",
         tests=[POISON + "test_the_outbox_hangs"]),
    Rule(name="what runs is not settled by hand",
         of="promise 5",
         file="supervisor/decisions.c",
         before="\tif (fault != NULL)\n",
         after="\tif (false)\n",
         tests=[MATRIX + "test_r21_r22_a_group_without_its_leader[claude]"]),
    Rule(name="a token is looked at before an argument",
         of="T81",
         file="mcpd/call.c",
         before="\tif (reply->type == MSG_FAILED)\n"
                "\t\tcall_answer(call, refusal_of(&reply->failed), true);\n"
                "\telse\n"
                "\t\tcall->then(call);",
         after="\tcall->then(call);",
         tests=["test_mcp_domain"]),
    Rule(name="a verdict from before a redispatch is none",
         of="3.3",
         file="ledger/verdict.c",
         before=" || was.rerun != v->rerun ||",
         after=" ||",
         tests=["integration/test_decide_anew.py::"
                "test_a_verdict_from_before_it_is_none[blocked]"]),
    Rule(name="a reply in doubt is not adopted by a listing",
         of="L8",
         file="ledger/adopt.def",
         before="\" AND \" IS_ADOPTABLE(\"t\") \" AND NOT \" IS_OWN_UNSETTLED(\"t\")",
         after="\" AND \" IS_ADOPTABLE(\"t\")",
         tests=["test_ledger_adopt"]),
    Rule(name="no follow-up without its route",
         of="6.6",
         file="ledger/join.c",
         before="\tif (!has_route)\n",
         after="\tif (false)\n",
         tests=["test_ledger_join"]),
    Rule(name="a dispatcher that dies in a stop has a successor",
         of="G5",
         file="supervisor/stop.c",
         before="\tif (stop->stage != STAGE_DISPATCHER || c == NULL",
         after="\tif (stop->stage != STAGE_OVER || c == NULL",
         tests=["crash/test_kill_while_stopping.py"]),
    Rule(name="a stop ends what earlier runs left",
         of="G5",
         file="supervisor/attempts.c",
         before="\trecoveries_end();\n",
         after="",
         tests=["test_recovery"]),
    Rule(name="a report is heard before the end",
         of="R7",
         file="ledger/ledger.c",
         before="\t\thear_reports(m->end.attempt);\n",
         after="\t\t(void)m;\n",
         tests=["reports_first"]),
    Rule(name="a report is heard before a settlement",
         of="R7",
         file="ledger/ledger.c",
         before="\t\thear_reports(m->settle.attempt);\n",
         after="\t\t(void)m;\n",
         tests=["reports_first"]),
    Rule(name="what a program says comes before the clock",
         of="promise 5",
         file="supervisor/attempt_worker.c",
         before="\t} else if (verdict == 0 && (what & EV_TIMEOUT) != 0) {\n",
         after="\t} else if ((what & EV_TIMEOUT) != 0) {\n"
               "\t\t(void)snprintf(a->failure, sizeof(a->failure), \"late\");\n",
         tests=["test_attempts"]),
    Rule(name="a look is believed after a kill",
         of="promise 5",
         file="supervisor/tree.c",
         before="\t\t(void)kill(-tree->leader.pgid, SIGKILL);\n",
         after="\t\t(void)0;\n",
         tests=["test_tree"]),
]
