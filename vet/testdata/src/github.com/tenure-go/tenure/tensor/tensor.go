package tensor

type Operand interface{ Tensor() *Tensor }

type Tensor struct{ n int }

type Donated struct{ t *Tensor }
type Reused struct{ t *Tensor }

func (t *Tensor) Tensor() *Tensor   { return t }
func (d Donated) Tensor() *Tensor   { return d.t }
func (r Reused) Tensor() *Tensor    { return r.t }
func (t *Tensor) Donate() Donated   { return Donated{t} }
func (t *Tensor) Reuse() Reused     { return Reused{t} }
func (t *Tensor) Release() error    { return nil }
func (t *Tensor) Shape() []int      { return nil }
func (t *Tensor) Alive() bool       { return t != nil }
func (t *Tensor) IsExclusive() bool { return true }

func (t *Tensor) Reshape(dims ...int) (*Tensor, error) { return t, nil }
func (d Donated) Reshape(dims ...int) (*Tensor, error) { return d.t, nil }

type View[T any] struct{ Data []T }

func (v *View[T]) Release() {}

func Of[T any](data []T, dims ...int) (*Tensor, error) { return &Tensor{}, nil }
func Read[T any](x *Tensor) (View[T], error)           { return View[T]{}, nil }
func Values[T any](x *Tensor) ([]T, error)             { return nil, nil }
func Write[T any](x *Tensor) (*View[T], error)         { return &View[T]{}, nil }
func Zeros[T any](dims ...int) (*Tensor, error)        { return &Tensor{}, nil }

type Bytes struct{ Data []byte }

func (b *Bytes) Release() {}

func (t *Tensor) Use() (Bytes, error)  { return Bytes{}, nil }
func (t *Tensor) Lock() (Bytes, error) { return Bytes{}, nil }
