package driver

import (
	"context"
	"database/sql/driver"
)

// recording makes connections that tell of the texts they send, which an error keeps
// from the server.
type recording struct {
	driver.Connector
	note func(ctx context.Context, text string) error
}

func (r recording) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordingConn{dc.(innerConn), r.note}, nil
}

type recordingConn struct {
	innerConn
	note func(ctx context.Context, text string) error
}

func (c *recordingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.note(ctx, text); err != nil {
		return nil, err
	}
	return c.innerConn.ExecContext(ctx, text, args)
}

func (c *recordingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.note(ctx, text); err != nil {
		return nil, err
	}
	return c.innerConn.QueryContext(ctx, text, args)
}

func (c *recordingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := c.note(ctx, text); err != nil {
		return nil, err
	}
	return c.innerConn.PrepareContext(ctx, text)
}
