package main

// The lines of docs/EXEC.md.

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
)

// Bytes as hexadecimal digits; nil is null.
type hexed []byte

func (h *hexed) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*h = nil
		return nil
	}
	*h = make([]byte, len(text)/2-1)
	_, err := hex.Decode(*h, text[1:len(text)-1])
	return err
}

type request struct {
	ID               uint64 `json:"id"`
	Op, Dir          string
	Key, Value, From hexed
	Below            *hexed
	Limit            int
	Changes          []hexed
	Tx               uint64
}

type answer map[string]any

// The transaction is over, and nothing has changed.
var errConflict = errors.New("another transaction writes")

// Answers requests until there are no more. Answers are written when no more requests wait.
func serve(respond func(*request, answer) error) {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriter(os.Stdout)
	for {
		if in.Buffered() == 0 {
			out.Flush()
		}
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		r, a := request{}, answer{}
		if err = json.Unmarshal(line, &r); err == nil {
			err = respond(&r, a)
		}
		if a["id"] = r.ID; err != nil {
			a["error"], a["why"] = "refused", err.Error()
			if err == errConflict {
				a["error"] = "conflict"
			}
		}
		text, _ := json.Marshal(a)
		out.Write(append(text, '\n'))
	}
}
