package httpserver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// departures tells connections when their clients leave: one goroutine for all of them, which sleeps while nobody
// does (EPOLLRDHUP, epoll_ctl(2)).
type departures struct {
	epoll   *os.File
	raw     syscall.RawConn
	stopped chan struct{}

	mu   sync.Mutex
	of   map[uint64]*conn
	last uint64 // id that was given
}

// watchDepartures begins. Call stop when no connection is left.
func watchDepartures() (*departures, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // so that waiting for it takes no thread
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), syscall.Close(fd))
	}
	d := &departures{epoll: os.NewFile(uintptr(fd), "epoll"), stopped: make(chan struct{}), of: map[uint64]*conn{}}
	d.raw, err = d.epoll.SyscallConn()
	if err == nil {
		err = d.epoll.SetReadDeadline(time.Time{}) // fails where it can not be waited for
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), d.epoll.Close())
	}
	go d.run()
	return d, nil
}

// stop ends it.
func (d *departures) stop() {
	if d == nil {
		return
	}
	_ = d.epoll.Close() // nothing is written to it
	<-d.stopped
}

// add has a connection told. Where that fails, net/http finds out itself.
func (d *departures) add(c *conn) {
	system, ok := c.transport.(syscall.Conn)
	if d == nil || !ok {
		return
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return
	}
	d.mu.Lock()
	d.last++
	id := d.last
	d.of[id] = c
	d.mu.Unlock()
	c.attention.departures, c.attention.id = d, id
	event := syscall.EpollEvent{Events: syscall.EPOLLRDHUP | edge, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32))}
	failed := raw.Control(func(fd uintptr) {
		// Both descriptors are open: ours until the last connection is closed.
		own := d.raw.Control(func(epoll uintptr) {
			err = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_ADD, int(fd), &event)
		})
		err = errors.Join(err, own)
	})
	if failed != nil || err != nil {
		d.forget(id)
		c.attention.departures = nil
	}
}

// edge is EPOLLET, which package syscall has with the wrong sign.
const edge = 1 << 31

// conns returns the connections that are told.
func (d *departures) conns() []*conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.of))
}

// forget no longer tells a connection. The system forgets it when it is closed.
func (d *departures) forget(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, id)
}

// run tells connections until stop.
func (d *departures) run() {
	defer close(d.stopped)
	events := make([]syscall.EpollEvent, 64)
	for {
		var n int
		var err error
		failed := d.raw.Read(func(fd uintptr) bool {
			for {
				if n, err = syscall.EpollWait(int(fd), events, 0); err != syscall.EINTR {
					return n != 0 // at 0 it sleeps until there is something
				}
			}
		})
		if failed != nil || err != nil {
			return // closed
		}
		for _, e := range events[:n] {
			id := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
			d.mu.Lock()
			c := d.of[id]
			d.mu.Unlock()
			if c != nil {
				c.attention.departed(c.nothingLeft)
			}
		}
	}
}

// nothingLeft tells whether the client is gone, and all that it sent has been read.
func (c *conn) nothingLeft() bool {
	raw, err := c.transport.(syscall.Conn).SyscallConn()
	if err != nil {
		return true // closed
	}
	var n int
	failed := raw.Control(func(fd uintptr) {
		var next [1]byte
		for {
			if n, _, err = syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT); err != syscall.EINTR {
				return
			}
		}
	})
	return failed != nil || err != nil && err != syscall.EAGAIN || err == nil && n == 0
}
