#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/sandbox/acts.h"
#include "tests/sandbox/scene.h"

#define TRY(call) ((call) == -1 ? errno : 0)

static struct sockaddr_in
loopback(unsigned int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	    .sin_port = htons((unsigned short)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int
act_tcp_socket(void)
{
	return TRY(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
}

int
act_udp_socket(void)
{
	return TRY(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

int
act_raw_socket(void)
{
	return TRY(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

int
act_unix_socket(void)
{
	return TRY(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

int
act_netlink_socket(void)
{
	return TRY(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

int
act_packet_socket(void)
{
	return TRY(socket(AF_PACKET, SOCK_RAW, 0));
}

int
act_vsock_socket(void)
{
	return TRY(socket(AF_VSOCK, SOCK_STREAM, 0));
}

int
act_bluetooth_socket(void)
{
	return TRY(socket(AF_BLUETOOTH, SOCK_RAW, 0));
}

int
act_local_pair(void)
{
	int fds[2];

	return TRY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
}

int
act_inet_pair(void)
{
	int fds[2];

	return TRY(socketpair(AF_TIPC, SOCK_STREAM, 0, fds));
}

int
act_bind_tcp(void)
{
	struct sockaddr_in at = loopback(0);

	return TRY(bind(scene.tcp, (struct sockaddr *)&at, sizeof(at)));
}

int
act_bind_udp(void)
{
	struct sockaddr_in at = loopback(0);

	return TRY(bind(scene.udp, (struct sockaddr *)&at, sizeof(at)));
}

int
act_listen_tcp(void)
{
	return TRY(listen(scene.tcp, 1));
}

int
act_accept_tcp(void)
{
	(void)fcntl(scene.listener, F_SETFL, O_NONBLOCK);
	return TRY(accept4(scene.listener, NULL, NULL, SOCK_CLOEXEC));
}

int
act_connect_tcp(void)
{
	struct sockaddr_in at = loopback(scene.port);

	return TRY(connect(scene.tcp, (struct sockaddr *)&at, sizeof(at)));
}

/* With a socket that was there before: the scope, not the socket, refuses. */
int
act_connect_abstract(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	(void)snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s",
	    scene.abstract_name);
	return TRY(connect(scene.local, (struct sockaddr *)&at, sizeof(at)));
}

int
act_send_to_address(void)
{
	struct sockaddr_in at = loopback(scene.port);

	return TRY(
	    sendto(scene.udp, "x", 1, 0, (struct sockaddr *)&at, sizeof(at)));
}

int
act_tcp_option(void)
{
	int on = 1;

	return TRY(
	    setsockopt(scene.tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
}

int
act_netfilter_option(void)
{
	int on = 1;

	return TRY(setsockopt(scene.tcp, SOL_RAW, 64, &on, sizeof(on)));
}

int
act_make_pipe(void)
{
	int fds[2];

	return TRY(pipe2(fds, O_CLOEXEC));
}
