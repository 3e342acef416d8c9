package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// readScores returns the scores of the last runs by file.
func readScores(name string) (map[string]score, error) {
	all := map[string]score{}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

func writeScores(name string, all map[string]score) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
