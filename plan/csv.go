package plan

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ErrCSV is the kind of every error about the text of a problem file.
var ErrCSV = errors.New("invalid problem file")

// csvColumns are the columns of a problem file. The first four are those of the
// minimalloc benchmarks; offset is ours.
var csvColumns = []string{"id", "lower", "upper", "size", "offset"}

// ReadCSV reads a problem in the form of the minimalloc benchmarks: a header
// with the columns id, lower, upper and size in any order, and a row per buffer
// that is live in [lower, upper). An optional column offset makes rows with one
// id the pieces of one storage. The problem has blocks of one byte; set Align
// for others.
func ReadCSV(r io.Reader) (*Problem, error) {
	rows := csv.NewReader(r)
	rows.TrimLeadingSpace = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("plan: %w: header: %w", ErrCSV, err)
	}
	column, err := csvHeader(header)
	if err != nil {
		return nil, err
	}
	_, pieces := column["offset"]
	p := &Problem{Align: 1}
	index := map[string]int{}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("plan: %w: %w", ErrCSV, err)
		}
		line, _ := rows.FieldPos(0)
		x, err := csvPiece(row, column)
		if err != nil {
			return nil, fmt.Errorf("plan: %w: line %d: %w", ErrCSV, line, err)
		}
		id := row[column["id"]]
		i, known := index[id]
		if known && !pieces {
			return nil, fmt.Errorf("plan: %w: line %d: id: got %q a second time, want one row per id without a column offset", ErrCSV, line, id)
		}
		if !known {
			i = len(p.Storages)
			index[id] = i
			p.Storages = append(p.Storages, Storage{Name: id})
		}
		s := &p.Storages[i]
		s.Pieces = append(s.Pieces, x)
		s.Size = max(s.Size, x.Offset+x.Size)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func csvHeader(header []string) (map[string]int, error) {
	column := map[string]int{}
	for i, name := range header {
		known := false
		for _, want := range csvColumns {
			known = known || name == want
		}
		if _, twice := column[name]; twice || !known {
			return nil, fmt.Errorf("plan: %w: header: got column %q, want each of %v once", ErrCSV, name, csvColumns)
		}
		column[name] = i
	}
	for _, want := range csvColumns[:4] {
		if _, ok := column[want]; !ok {
			return nil, fmt.Errorf("plan: %w: header: got %v, want a column %q", ErrCSV, header, want)
		}
	}
	return column, nil
}

func csvPiece(row []string, column map[string]int) (Piece, error) {
	var number [5]int64
	for k, name := range csvColumns[1:] {
		i, ok := column[name]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(row[i], 10, 64)
		if err != nil || n < 0 || n > MaxBytes {
			return Piece{}, fmt.Errorf("%s: got %q, want a number from 0 to %d", name, row[i], int64(MaxBytes))
		}
		number[k] = n
	}
	if lower, upper := number[0], number[1]; lower >= upper || upper > int64(MaxTime) {
		return Piece{}, fmt.Errorf("life: got [%d,%d), want its start before its end, up to %d", lower, upper, MaxTime)
	}
	if size, offset := number[2], number[3]; size > MaxBytes-offset {
		return Piece{}, fmt.Errorf("end: got %d bytes at offset %d, want at most %d", size, offset, int64(MaxBytes))
	}
	return Piece{Start: Time(number[0]), End: Time(number[1]), Size: number[2], Offset: number[3]}, nil
}

// WriteCSV writes p in the form that ReadCSV reads, with the column offset
// where a storage is more than one plain buffer. The form names storages by id
// and has no block size: two storages of one name, a storage without pieces,
// and a storage that is larger than its pieces are errors.
func (p *Problem) WriteCSV(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	names := map[string]bool{}
	columns := csvColumns[:4]
	for i := range p.Storages {
		s := &p.Storages[i]
		if names[s.Name] {
			return fmt.Errorf("plan: %w: storage %d: name: got %q a second time, want names that differ", ErrCSV, i, s.Name)
		}
		names[s.Name] = true
		var end int64
		for _, x := range s.Pieces {
			end = max(end, x.Offset+x.Size)
		}
		if len(s.Pieces) == 0 || end != s.Size {
			return fmt.Errorf("plan: %w: storage %d (%q): size: got %d, want %d, where its last piece ends", ErrCSV, i, s.Name, s.Size, end)
		}
		if len(s.Pieces) > 1 || s.Pieces[0].Offset > 0 {
			columns = csvColumns
		}
	}
	rows := [][]string{columns}
	for i := range p.Storages {
		for _, x := range p.Storages[i].Pieces {
			row := []string{p.Storages[i].Name}
			for _, n := range []int64{int64(x.Start), int64(x.End), x.Size, x.Offset} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			rows = append(rows, row[:len(columns)])
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}
