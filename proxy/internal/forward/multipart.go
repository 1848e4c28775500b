package forward

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/apierr"
)

// boundaryOf returns the boundary of a multipart/form-data body, "" for other types.
func boundaryOf(contentType string) string {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" {
		return ""
	}
	return parameters["boundary"]
}

// reframe writes the parts of a multipart/form-data body anew, with a random boundary. A value cannot hold that, and so
// cannot end its part. reframe finds out which parts may have placeholders, and sets the body's Content-Type.
func (h *heldBody) reframe(boundary string) error {
	whole := &heldBody{of: h.of, shares: h.shares}
	err := whole.copyParts(multipart.NewReader(bytes.NewReader(h.text), boundary))
	h.release()
	h.text, h.parts, h.contentType = whole.text, whole.parts, whole.contentType
	return err
}

// copyParts appends all parts, each with its headers.
func (h *heldBody) copyParts(from *multipart.Reader) error {
	to := multipart.NewWriter(h)
	h.contentType = to.FormDataContentType()
	done := 0 // the length of h.parts
	for {
		part, err := from.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped one reports that the end is missing
			break
		}
		if err != nil {
			return partFault(err)
		}
		content, err := to.CreatePart(part.Header)
		if err != nil {
			return partFault(err)
		}
		begin := len(h.text)
		if _, err := io.Copy(content, part); err != nil {
			return partFault(err)
		}
		text := h.text[begin:]
		syntax := partSyntax(part.Header)
		if _, _, _, found := template.Find(text); !found || syntax == template.Verbatim {
			continue
		}
		if escape := template.Dangling(text); escape != "" {
			return danglingFault("body", escape)
		}
		h.parts = append(h.parts, template.Part{Syntax: template.Verbatim, Length: begin - done}, template.Part{Syntax: syntax, Length: len(text)})
		done = len(h.text)
	}
	if err := to.Close(); err != nil {
		return partFault(err)
	}
	h.parts = append(h.parts, template.Part{Syntax: template.Verbatim, Length: len(h.text) - done})
	return nil
}

// partSyntax returns the syntax of a part. A part without a type is text (RFC 7578, section 4.4).
func partSyntax(h textproto.MIMEHeader) template.Syntax {
	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		return template.Verbatim
	}
	if _, typed := h["Content-Type"]; !typed {
		return template.Text
	}
	if syntax, known := template.SyntaxOf(h.Get("Content-Type")); known {
		return syntax
	}
	return template.Verbatim
}

// partFault returns the refusal for a body that is not what its type says, or for one that found no memory.
func partFault(err error) error {
	if refusal, ok := errors.AsType[*apierr.Error](err); ok {
		return refusal
	}
	return apierr.New(apierr.InvalidBody, "The request's body is not multipart/form-data with the boundary of its Content-Type.").Because(fault("the parts of the caller's body could not be read"))
}
