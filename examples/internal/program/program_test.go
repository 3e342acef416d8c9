package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
)

func TestExampleWithoutAnAddressStartsAServer(t *testing.T) {
	var out, progress bytes.Buffer
	var server string
	example := func(ctx context.Context, connect string, out io.Writer) error {
		server = connect
		client, err := framework.New(connect)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, "done\n")
		return errors.Join(err, client.WaitConnected(ctx), client.Close())
	}
	require.NoError(t, runOn(t.Context(), "", &out, &progress, example))
	require.Equal(t,
		"started an in-process ZooKeeper server (package zktest, not the real one) at "+server+"\n", progress.String())
	require.Equal(t, "done\n", out.String())
}

func TestExampleWithAnAddressUsesIt(t *testing.T) {
	var progress bytes.Buffer
	failed := errors.New("failed")
	example := func(_ context.Context, connect string, _ io.Writer) error {
		require.Equal(t, "zk1:2181", connect)
		return failed
	}
	err := runOn(t.Context(), "zk1:2181", io.Discard, &progress, example)
	require.Equal(t, failed, err)
	require.Empty(t, progress.String())
}

func TestUnexpectedResultIsAnError(t *testing.T) {
	want := errors.New("refused")
	require.NoError(t, Expect(fmt.Errorf("acquire: %w", want), want))
	require.EqualError(t, Expect(nil, want), "no error, where this was expected: refused")
	require.Equal(t, io.EOF, Expect(io.EOF, want))
}
