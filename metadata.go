package tenure

import "maps"

// Metadata is the information of a model's file about the model as a whole.
// Fields that the file leaves out are empty.
type Metadata struct {
	Producer        string // the program that wrote the file
	ProducerVersion string
	Domain          string            // whose model it is, such as com.example
	Version         int64             // of the model, in its domain
	Doc             string            // for people
	Graph           string            // the name of the graph
	GraphDoc        string            // for people
	IRVersion       int64             // of the file's format
	Opsets          map[string]int64  // operator sets by domain; "" is that of ONNX
	Properties      map[string]string // notes of the model's maker: labels, licence, authors
}

// Metadata returns the file's information about the model. The maps are the
// caller's.
func (m *Model) Metadata() Metadata {
	if m.none() {
		return Metadata{}
	}
	f := m.file
	return Metadata{
		Producer: f.Producer, ProducerVersion: f.ProducerVersion, Domain: f.Domain, Version: f.Version, Doc: f.Doc,
		Graph: f.Graph, GraphDoc: f.GraphDoc, IRVersion: f.IRVersion, Opsets: maps.Clone(f.Opsets), Properties: maps.Clone(f.Metadata),
	}
}
