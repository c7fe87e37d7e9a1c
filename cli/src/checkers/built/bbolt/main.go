// Opens a bbolt database, checks it as `bbolt check` does, and prints the pairs of its bucket `kv`,
// or of its only bucket.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
)

func word(bytes []byte) string {
	if len(bytes) == 0 {
		return "-"
	}
	return hex.EncodeToString(bytes)
}

func bucket(tx *bolt.Tx) (*bolt.Bucket, error) {
	if b := tx.Bucket([]byte("kv")); b != nil {
		return b, nil
	}
	var found []*bolt.Bucket
	err := tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
		found = append(found, b)
		return nil
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(found) > 1 {
		return nil, errors.New("expected the bucket `kv` or a single one")
	}
	return found[0], nil
}

func check(file string) error {
	db, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	err = db.View(func(tx *bolt.Tx) error {
		var first error
		for wrong := range tx.Check() {
			if first == nil {
				first = fmt.Errorf("check: %w", wrong)
			}
		}
		if first != nil {
			return first
		}
		b, err := bucket(tx)
		if b == nil {
			return err
		}
		return b.ForEach(func(k, v []byte) error {
			fmt.Fprintln(out, word(k), word(v))
			return nil
		})
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "end")
	if err := db.Close(); err != nil {
		return err
	}
	return out.Flush()
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "go.etcd.io/bbolt" {
			return "bbolt " + module.Version
		}
	}
	return "bbolt"
}

func main() {
	if len(os.Args) != 2 {
		fmt.Println(version())
		return
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
