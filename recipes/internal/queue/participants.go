package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/recipes"
)

// Participants reads who is in line, first come first. Who leaves while we read is left out.
func (l *Line) Participants(ctx context.Context) ([]recipes.Participant, error) {
	children, _, err := l.client.Children(ctx, l.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("participants: %w", err)
	}
	var all []recipes.Participant
	line := lineup(children, l.rules.Block)
	for _, m := range line {
		data, stat, err := l.client.Get(ctx, l.node(m.name))
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("participants: %w", err)
		}
		all = append(all, participant(l.node(m.name), data, stat))
	}
	if wrapped(line) {
		slices.SortFunc(all, func(a, b recipes.Participant) int { return cmp.Compare(a.Token, b.Token) })
	}
	return all, nil
}

func participant(node string, data []byte, stat *zk.Stat) recipes.Participant {
	return recipes.Participant{
		Node:     node,
		Data:     data,
		Identity: recipes.ParseIdentity(data),
		Session:  stat.EphemeralOwner,
		Token:    stat.Czxid,
		Since:    time.UnixMilli(stat.Ctime),
	}
}

// DefaultData is what Curator stores in a node that is given no data: the host's IP address. Nothing parses it.
var DefaultData = sync.OnceValue(func() []byte {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return []byte("127.0.0.1")
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return []byte(ip.IP.String())
		}
	}
	return []byte("127.0.0.1")
})
