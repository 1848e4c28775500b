package forward

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/apierr"
)

// boundaryOf returns the boundary of a multipart/form-data body, and "" for other types or an invalid Content-Type.
func boundaryOf(contentType string) string {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" {
		return ""
	}
	return parameters["boundary"]
}

// reframe writes the parts of a multipart/form-data body again, with a random boundary. Nobody knows the random
// boundary before, so no value can be made to end its part. reframe also finds out which parts may have placeholders,
// and sets the body's Content-Type.
func (h *heldBody) reframe(boundary string) error {
	whole := &heldBody{of: h.of, shares: h.shares}
	err := whole.copyParts(multipart.NewReader(bytes.NewReader(h.text), boundary))
	h.release()
	h.text, h.parts, h.contentType = whole.text, whole.parts, whole.contentType
	return err
}

// copyParts appends all parts of a multipart body to h.text, each with its headers, and sets contentType and parts. The
// error is the refusal for the caller.
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
		if namesCharset(part.Header) && !template.IsCharset(text) {
			return unfit(template.Unfit("names another character set in " + template.CharsetField))
		}
		media, known := partMedia(part.Header)
		if _, _, _, found := template.Find(text); !found || !known {
			continue
		}
		h.parts = append(h.parts, verbatim(begin-done), template.Part{Media: media, Length: len(text), Name: partName(part.Header)})
		done = len(h.text)
	}
	if err := to.Close(); err != nil {
		return partFault(err)
	}
	h.parts = append(h.parts, verbatim(len(h.text)-done))
	return nil
}

func verbatim(length int) template.Part {
	return template.Part{Media: template.Media{Syntax: template.Verbatim}, Length: length}
}

// partMedia returns the Media of a part by the part's headers. A part without a type is text (RFC 7578, section 4.4).
// partMedia reports false for a part that values cannot be inserted into, and for headers that readers may read
// differently.
func partMedia(h textproto.MIMEHeader) (template.Media, bool) {
	types, codings := h["Content-Type"], h["Content-Transfer-Encoding"]
	if len(types) > 1 || len(codings) > 1 || len(h["Content-Encoding"]) > 0 {
		return template.Media{}, false
	}
	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		return template.Media{}, false
	}
	if len(types) == 0 {
		return template.Media{}, true
	}
	return template.MediaOf(types[0])
}

// dispositions matches a Content-Disposition in which all readers find the same name of a part, and captures the name.
var dispositions = regexp.MustCompile(`\Aform-data; ?name="([^"\\]+)"(?:; ?filename="[^"\\]*")?\z`)

// partName returns the name of a part, or "" if readers may find different names in the headers.
func partName(h textproto.MIMEHeader) string {
	lines := h["Content-Disposition"]
	if len(lines) != 1 {
		return ""
	}
	if found := dispositions.FindStringSubmatch(lines[0]); found != nil {
		return found[1]
	}
	return ""
}

// namesCharset reports whether a reader may treat a part as the field that names the form's character set.
func namesCharset(h textproto.MIMEHeader) bool {
	return slices.ContainsFunc(h["Content-Disposition"], func(line string) bool {
		return strings.Contains(strings.ToLower(line), template.CharsetField)
	})
}

// partFault returns err itself if err is a refusal, such as one for a lack of memory. For other errors, partFault
// returns the refusal for a body that is not what its type says.
func partFault(err error) error {
	if refusal, ok := errors.AsType[*apierr.Error](err); ok {
		return refusal
	}
	return apierr.New(apierr.InvalidBody, "The request's body is not multipart/form-data with the boundary of its Content-Type.").Because(fault("the parts of the caller's body could not be read"))
}
