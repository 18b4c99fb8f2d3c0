// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"
)

// headStart is how long one address has before the next is tried beside it (RFC 8305 advises 250 ms).
const headStart = 250 * time.Millisecond

// dialer connects to a name's addresses, all of them in turn. Each round of the loop begins with another one, so that a
// server which accepts and then fails does not hide the others behind the same name.
type dialer struct {
	resolver interface {
		LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	}
	own     func() []netip.Addr // this machine's addresses
	timeout time.Duration
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		found, err := d.resolver.LookupIPAddr(ctx, host)
		if err != nil {
			return nil, err
		}
		round, _ := ctx.Value(roundKey{}).(int)
		addresses = order(found, d.own(), round)
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "the name has no addresses", Name: host, IsNotFound: true}
	}
	return race(ctx, &net.Dialer{Timeout: d.timeout, KeepAlive: 15 * time.Second}, network, addresses, port)
}

// order interleaves the address families, turns the list by the number of the round, and puts this machine's own
// addresses last: a machine whose name for the server includes itself (round-robin DNS) does not ask itself first.
func order(found []net.IPAddr, own []netip.Addr, round int) (addresses []string) {
	var six, four, ours []string
	for _, ip := range found {
		parsed, _ := netip.AddrFromSlice(ip.IP)
		switch parsed = parsed.Unmap(); {
		case slices.Contains(own, parsed) && !parsed.IsLoopback():
			ours = append(ours, ip.String())
		case parsed.Is4():
			four = append(four, ip.String())
		default:
			six = append(six, ip.String())
		}
	}
	for i := range max(len(six), len(four)) {
		addresses = append(addresses, six[min(i, len(six)):min(i+1, len(six))]...)
		addresses = append(addresses, four[min(i, len(four)):min(i+1, len(four))]...)
	}
	if n := len(addresses); n > 0 {
		turn := round % n
		addresses = append(addresses[turn:n:n], addresses[:turn]...)
	}
	return append(addresses, ours...)
}

// race starts one connection after the other, the next when the one before has failed or had its head start, and
// returns the first that is made. The error joins those of all addresses.
func race(ctx context.Context, d *net.Dialer, network string, addresses []string, port string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		conn net.Conn
		err  error
	}
	outcomes := make(chan outcome, len(addresses))
	var errs []error
	for started := 0; ; {
		var next <-chan time.Time
		if started < len(addresses) {
			address := net.JoinHostPort(addresses[started], port)
			go func() {
				conn, err := d.DialContext(ctx, network, address)
				outcomes <- outcome{conn, err}
			}()
			started++
			next = time.After(headStart)
		}
		select {
		case <-next:
			continue
		case first := <-outcomes:
			if first.err == nil {
				go func(others int) { // the slower ones are closed as they come in
					for range others {
						if late := <-outcomes; late.conn != nil {
							late.conn.Close()
						}
					}
				}(started - len(errs) - 1)
				return first.conn, nil
			}
			if errs = append(errs, first.err); len(errs) == len(addresses) {
				return nil, errors.Join(errs...)
			}
		}
	}
}

func ownAddresses() (own []netip.Addr) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, address := range found {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own
}
