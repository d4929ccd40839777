package binding

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// KubeVirt's messages, as its files pkg/hooks/info/api_info.proto and pkg/hooks/v1alpha3/api_v1alpha3.proto define them.
// Its Go module would bring the requirements of all of KubeVirt, and these are nine messages.
const (
	infoPackage      = "kubevirt.hooks.info"
	callbacksPackage = "kubevirt.hooks.v1alpha3"
	// hooksVersion is the version of the callbacks that the sidecar implements.
	hooksVersion = "v1alpha3"
)

// field describes a field of a message.
type field struct {
	name   string
	number int32
	form   descriptorpb.FieldDescriptorProto_Type
	// message is the name of a message's type.
	message  string
	repeated bool
}

func bytesField(name string, number int32) field {
	return field{name: name, number: number, form: descriptorpb.FieldDescriptorProto_TYPE_BYTES}
}

func textField(name string, number int32) field {
	return field{name: name, number: number, form: descriptorpb.FieldDescriptorProto_TYPE_STRING}
}

// infoMessages are the messages of the service by which KubeVirt learns what a sidecar implements.
var infoMessages = messages(infoPackage, map[string][]field{
	"InfoParams": nil,
	"InfoResult": {
		textField("name", 1),
		{name: "hookPoints", number: 3, form: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, message: "HookPoint", repeated: true},
		{name: "versions", number: 4, form: descriptorpb.FieldDescriptorProto_TYPE_STRING, repeated: true},
	},
	"HookPoint": {
		textField("name", 1),
		{name: "priority", number: 2, form: descriptorpb.FieldDescriptorProto_TYPE_INT32},
	},
})

// callbackMessages are the messages of the hooks. All of their fields are bytes.
var callbackMessages = messages(callbacksPackage, map[string][]field{
	"OnDefineDomainParams":  {bytesField("domainXML", 1), bytesField("vmi", 2)},
	"OnDefineDomainResult":  {bytesField("domainXML", 1)},
	"PreCloudInitIsoParams": {bytesField("cloudInitNoCloudSource", 1), bytesField("vmi", 2), bytesField("cloudInitData", 3)},
	"PreCloudInitIsoResult": {bytesField("cloudInitNoCloudSource", 1), bytesField("cloudInitData", 3)},
	"ShutdownParams":        nil,
	"ShutdownResult":        nil,
})

// messages returns the descriptors of a package's messages.
func messages(name string, all map[string][]field) protoreflect.MessageDescriptors {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String(name + ".proto"), Package: proto.String(name), Syntax: proto.String("proto3"),
	}
	for message, fields := range all {
		described := &descriptorpb.DescriptorProto{Name: proto.String(message)}
		for _, field := range fields {
			label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
			if field.repeated {
				label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
			}
			one := &descriptorpb.FieldDescriptorProto{
				Name: proto.String(field.name), Number: proto.Int32(field.number), Type: field.form.Enum(), Label: label.Enum(),
			}
			if field.message != "" {
				one.TypeName = proto.String("." + name + "." + field.message)
			}
			described.Field = append(described.Field, one)
		}
		file.MessageType = append(file.MessageType, described)
	}
	descriptor, err := protodesc.NewFile(file, nil)
	if err != nil {
		panic(fmt.Sprintf("the messages of %s are invalid: %v", name, err))
	}
	return descriptor.Messages()
}

// newMessage returns an empty message.
func newMessage(all protoreflect.MessageDescriptors, name protoreflect.Name) *dynamicpb.Message {
	return dynamicpb.NewMessage(all.ByName(name))
}

// set sets a field of a message.
func set(message *dynamicpb.Message, name protoreflect.Name, value protoreflect.Value) {
	message.Set(message.Descriptor().Fields().ByName(name), value)
}

// bytesOf returns a field of a message.
func bytesOf(message *dynamicpb.Message, name protoreflect.Name) []byte {
	return message.Get(message.Descriptor().Fields().ByName(name)).Bytes()
}

// call is the implementation of a method.
type call func(context.Context, *dynamicpb.Message) (*dynamicpb.Message, error)

// service returns the description of a service. Each of its methods takes the message METHODParams.
func service(packageName, name string, all protoreflect.MessageDescriptors, calls map[string]call) *grpc.ServiceDesc {
	description := &grpc.ServiceDesc{ServiceName: packageName + "." + name}
	for method, call := range calls {
		handler := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			params := newMessage(all, protoreflect.Name(method+"Params"))
			if err := decode(params); err != nil {
				return nil, err
			}
			return call(ctx, params)
		}
		description.Methods = append(description.Methods, grpc.MethodDesc{MethodName: method, Handler: handler})
	}
	return description
}
