// bbolt. Build: go build -o bbolt . Usage: bbolt [nosync]
package main

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

var (
	db      *bolt.DB
	writing uint64
	open    = map[uint64]*bolt.Tx{}
	noSync  = len(os.Args) > 1 && os.Args[1] == "nosync"
	bucket  = []byte("kv")
)

var claims = map[string]any{
	"protocol": "treering.exec/1", "name": "bbolt", "isolation": "serializable",
	"durable": map[bool]string{true: "sync", false: "return"}[noSync],
	"has":     []string{"scan-back", "batch", "sync", "transactions", "snapshot"},
	"max_key": 1000, "max_record": 16384, "empty_key": false,
}

func begin(tx uint64, writes bool) (err error) {
	if writes && writing != 0 {
		return errConflict
	}
	if open[tx], err = db.Begin(writes); writes && err == nil {
		writing = tx
	}
	return err
}

func end(tx uint64, commits bool) error {
	t := open[tx]
	delete(open, tx)
	if writing == tx {
		writing = 0
	}
	if commits {
		return t.Commit()
	}
	return t.Rollback()
}

func change(b *bolt.Bucket, key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, value)
}

func access(r *request, b *bolt.Bucket, a answer) error {
	rows := []string{}
	add := func(k, v []byte) bool {
		if k != nil && len(rows) < 2*r.Limit {
			rows = append(rows, hex.EncodeToString(k), hex.EncodeToString(v))
			return true
		}
		return false
	}
	switch r.Op {
	case "get":
		a["value"] = nil
		if v := b.Get(r.Key); v != nil {
			a["value"] = hex.EncodeToString(v)
		}
	case "put":
		return b.Put(r.Key, append([]byte{}, r.Value...))
	case "delete":
		return b.Delete(r.Key)
	case "batch":
		for i := 0; i < len(r.Changes); i += 2 {
			if err := change(b, r.Changes[i], r.Changes[i+1]); err != nil {
				return err
			}
		}
	case "scan":
		c := b.Cursor()
		for k, v := c.Seek(r.From); add(k, v); k, v = c.Next() {
		}
		a["rows"] = rows
	case "scan-back":
		c := b.Cursor()
		k, v := c.Last()
		if r.Below != nil {
			if k, v = c.Seek(*r.Below); k == nil {
				k, v = c.Last()
			}
			for k != nil && bytes.Compare(k, *r.Below) >= 0 {
				k, v = c.Prev()
			}
		}
		for ; add(k, v); k, v = c.Prev() {
		}
		a["rows"] = rows
	}
	return nil
}

func respond(r *request, a answer) (err error) {
	switch r.Op {
	case "hello":
		for name, claim := range claims {
			a[name] = claim
		}
	case "open":
		if db, err = bolt.Open(filepath.Join(r.Dir, "kv.bolt"), 0o644, &bolt.Options{
			NoSync: noSync,
			// A map that grows waits for readers, and here one goroutine is both.
			InitialMmapSize: 1 << 28,
		}); err == nil {
			err = db.Update(func(t *bolt.Tx) error {
				_, err := t.CreateBucketIfNotExists(bucket)
				return err
			})
		}
	case "close":
		return db.Close()
	case "sync":
		return db.Sync()
	case "crash":
		os.Exit(1)
	case "begin", "snapshot":
		return begin(r.Tx, r.Op == "begin")
	case "commit", "abort":
		return end(r.Tx, r.Op == "commit")
	default:
		run := func(t *bolt.Tx) error { return access(r, t.Bucket(bucket), a) }
		if r.Tx != 0 {
			return run(open[r.Tx])
		} else if r.Op == "get" || r.Limit > 0 {
			return db.View(run)
		} else if writing != 0 {
			return errConflict
		}
		return db.Update(run)
	}
	return err
}

func main() { serve(respond) }
