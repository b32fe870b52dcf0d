"""Every exec of this machine as it happens, as Linux tells root of it (the
process connector of netlink): who looks at a process only now and then misses
one that lives for less.
"""

import errno
import os
import select
import socket
import struct
import time

CONNECTOR = 11  # of netlink
CN_PROC = (1, 1)
DONE = 3
LISTEN = 1
ANSWER = 0
EXEC = 2
ANSWER_WITHIN = 0.2  # seconds; it is there when send() returns
# struct nlmsghdr, struct cn_msg; of struct proc_event the kind, and the thread
# and the process that an exec is of.
HEADER = struct.Struct("=IHHII")
MESSAGE = struct.Struct("=IIIIHH")
WORD = struct.Struct("=I")
WHAT_AT = HEADER.size + MESSAGE.size
WHO_AT = WHAT_AT + 16
WHO = struct.Struct("=ii")
ROOM = 4 << 20


class Execs:
    """An open ear; close() it."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM,
                                    CONNECTOR)
        try:
            self.socket.setblocking(False)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM)
            self.socket.bind((0, CN_PROC[0]))
            body = MESSAGE.pack(*CN_PROC, 0, 0, WORD.size, 0) + \
                WORD.pack(LISTEN)
            self.socket.send(HEADER.pack(
                HEADER.size + len(body), DONE, 0, 0, 0) + body)
            self.await_answer()
        except OSError:
            self.socket.close()
            raise

    def await_answer(self):
        """The kernel answers nobody from within a namespace of pids."""
        until = time.monotonic() + ANSWER_WITHIN
        while (left := until - time.monotonic()) > 0:
            if select.select([self.socket], [], [], left)[0]:
                event = self.socket.recv(4096)
                if WORD.unpack_from(event, WHAT_AT)[0] == ANSWER:
                    return
        raise OSError(errno.ETIMEDOUT, "the kernel does not answer")

    def wait(self, seconds):
        """The pids of who has exec'd since, as soon as there are any; None
        when some were lost.
        """
        pids = []
        if not select.select([self.socket], [], [], seconds)[0]:
            return pids
        while True:
            try:
                event = self.socket.recv(4096)
            except BlockingIOError:
                return pids
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    return None
                raise
            if WORD.unpack_from(event, WHAT_AT)[0] == EXEC:
                pids.append(WHO.unpack_from(event, WHO_AT)[1])

    def close(self):
        self.socket.close()


def listen():
    """Ears, or None where the kernel tells nobody, or not us."""
    if os.geteuid() != 0:
        return None
    try:
        return Execs()
    except OSError:
        return None
