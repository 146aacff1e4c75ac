// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// TestCodecEncodesAsAnyOther decodes with protobuf's own decoder what the codec has encoded.
func TestCodecEncodesAsAnyOther(t *testing.T) {
	unknown := &evaluator.EvaluateFunctionRequest{ResourceList: []byte("list")}
	unknown.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7))
	for name, msg := range map[string]proto.Message{
		"whole":   &evaluator.EvaluateFunctionRequest{ResourceList: make([]byte, 1000), Image: "fn:v1", Tag: "^1"},
		"list":    &evaluator.EvaluateFunctionRequest{ResourceList: []byte{0}},
		"no list": &evaluator.EvaluateFunctionRequest{Image: "fn:v1"},
		"empty":   &evaluator.EvaluateFunctionRequest{},
		"unknown": unknown,
		"another": wrapperspb.String("another message"),
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := newCodec().Marshal(msg)
			if err != nil {
				t.Fatal(err)
			}
			got := msg.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(encoded.Materialize(), got); err != nil || !proto.Equal(got, msg) {
				t.Errorf("decoded %v, %v, want %v", got, err, msg)
			}
		})
	}
}

// TestCodecSendsTheBytesOfTheList checks what the codec is for.
func TestCodecSendsTheBytesOfTheList(t *testing.T) {
	list := bytes.Repeat([]byte("x"), 5_000_000)
	req := &evaluator.EvaluateFunctionRequest{ResourceList: list, Image: "fn:v1"}
	encoded, err := newCodec().Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	shared := false
	for _, buffer := range encoded {
		b := buffer.ReadOnlyData()
		shared = shared || (len(b) == len(list) && &b[0] == &list[0])
	}
	if !shared {
		t.Error("the list was copied")
	}
}

// FuzzCodecDecodesAsAnyOther compares the codec with protobuf's own decoder, on messages in pieces of any size.
func FuzzCodecDecodesAsAnyOther(f *testing.F) {
	whole, err := proto.Marshal(&evaluator.EvaluateFunctionResponse{ResourceList: []byte("list"), Log: []byte("log")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, 3)
	f.Add(append(append([]byte{}, whole...), whole...), 1)                                     // the list twice
	f.Add(append([]byte{0x12, 1, 'x'}, whole...), 100)                                         // the log first
	f.Add(whole[:3], 2)                                                                        // cut off
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 4)         // longer than any message
	f.Add([]byte{0x8a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x01, 'x'}, 1000) // a number in ten bytes
	f.Add([]byte{}, 1)
	f.Fuzz(func(t *testing.T, message []byte, piece int) {
		piece = max(piece, 1)
		var pieces mem.BufferSlice
		for rest := message; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			pieces = append(pieces, mem.SliceBuffer(rest[:min(piece, len(rest))]))
		}
		var got, want evaluator.EvaluateFunctionResponse
		got.Log = []byte("of an earlier message")
		gotErr, wantErr := newCodec().Unmarshal(pieces, &got), proto.Unmarshal(message, &want)
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("error %v, want %v", gotErr, wantErr)
		}
		if gotErr == nil && !proto.Equal(&got, &want) {
			t.Fatalf("decoded %v, want %v", &got, &want)
		}
	})
}
