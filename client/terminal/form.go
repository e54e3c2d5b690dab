package terminal

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
)

// form has a form filled in. A form without fields is a question of yes or no; one
// with a single field is sent as soon as that is answered; a longer one is shown
// for review first.
func (i *Interviewer) form(ctx context.Context, form *ask.Form) (jsontext.Value, error) {
	i.heading("asks:", form.Message)
	if len(form.Fields) == 0 {
		return i.confirm(ctx)
	}
	i.printf("  (%s says no, %s says nothing, at any prompt)\n", declineWord, cancelWord)
	values := map[string]jsontext.Value{}
	for {
		for _, field := range form.Fields {
			if err := i.field(ctx, field, values); err != nil {
				return nil, err
			}
		}
		content := form.Content(values)
		if err := form.Check(content); err != nil {
			i.printf("  The form is not complete: %s.\n", Line(err.Error()))
			continue
		}
		if len(form.Fields) == 1 {
			return ask.Response(ask.Accept, content), nil
		}
		send, err := i.review(ctx, form, values)
		if err != nil {
			return nil, err
		}
		if send {
			return ask.Response(ask.Accept, content), nil
		}
	}
}

// confirm asks yes or no.
func (i *Interviewer) confirm(ctx context.Context) (jsontext.Value, error) {
	for {
		typed, err := i.prompt(ctx, "Yes, no or cancel? [y/n/c] ")
		if err != nil {
			return nil, err
		}
		typed = strings.TrimSpace(typed)
		yes, ok := ask.YesOrNo(typed)
		switch {
		case ok && yes:
			return ask.Response(ask.Accept, jsontext.Value(`{}`)), nil
		case ok:
			return nil, &acted{ask.Decline}
		case strings.EqualFold(typed, "c") || strings.EqualFold(typed, "cancel"):
			return nil, &acted{ask.Cancel}
		}
		i.printf("  Type y to agree, n to decline (say no) or c to cancel (say nothing).\n")
	}
}

// field asks for one field until the answer is valid. What was answered before
// stands as the default.
func (i *Interviewer) field(ctx context.Context, field *ask.Field, values map[string]jsontext.Value) error {
	preset, answered := values[field.Name]
	if !answered {
		preset = field.Default
	}
	i.describe(field)
	for {
		typed, err := i.prompt(ctx, i.fieldPrompt(field, preset))
		if err != nil {
			return err
		}
		var value jsontext.Value
		switch trimmed := strings.TrimSpace(typed); {
		case trimmed == "" && len(preset) > 0:
			if value, err = preset, field.Check(preset); err == nil {
				values[field.Name] = value
				return nil
			}
		case trimmed == "" && field.Required:
			i.printf("  An answer is needed%s.\n", emptyTextHint(field))
			continue
		case trimmed == "" || trimmed == ":skip" && !field.Required:
			delete(values, field.Name)
			return nil
		default:
			if value, err = field.Parse(typed); err == nil {
				values[field.Name] = value
				return nil
			}
		}
		i.printf("  That will not do: %s.\n", Line(err.Error()))
	}
}

// emptyTextHint says how to give an empty text.
func emptyTextHint(field *ask.Field) string {
	if field.Kind == ask.Text {
		return `; type "" for an empty text`
	}
	return ""
}

// describe shows what a field is for and what it takes.
func (i *Interviewer) describe(field *ask.Field) {
	if field.Description != "" {
		i.printf("  %s\n", strings.ReplaceAll(Text(field.Description), "\n", "\n  "))
	}
	for n, choice := range field.Choices {
		i.printf("  %3d  %s\n", n+1, Line(choice.Title))
	}
}

// fieldPrompt is the prompt of a field: its title, what it takes, its default.
func (i *Interviewer) fieldPrompt(field *ask.Field, preset jsontext.Value) string {
	title := field.Title
	if title == "" {
		title = field.Name
	}
	var notes []string
	switch field.Kind {
	case ask.Integer:
		notes = append(notes, "a whole number")
	case ask.Number:
		notes = append(notes, "a number")
	case ask.Boolean:
		notes = append(notes, "y/n")
	case ask.OneOf:
		notes = append(notes, "one number")
	case ask.SomeOf:
		notes = append(notes, "numbers with commas"+noneNote(field))
	case ask.JSON:
		notes = append(notes, "JSON")
	case ask.Text:
		if field.Format != "" {
			notes = append(notes, formatNote(field.Format))
		}
	}
	if field.Limits != "" {
		notes = append(notes, field.Limits)
	}
	if !field.Required {
		notes = append(notes, skipNote(preset))
	}
	prompt := i.bold(Line(title))
	if len(notes) > 0 {
		prompt += fmt.Sprintf(" (%s)", Line(strings.Join(notes, "; ")))
	}
	if len(preset) > 0 {
		prompt += fmt.Sprintf(" [%s]", Line(field.Show(preset)))
	}
	return prompt + ": "
}

// noneNote says how to choose nothing, where that is allowed.
func noneNote(field *ask.Field) string {
	if field.Check(jsontext.Value(`[]`)) != nil {
		return ""
	}
	return ", or none"
}

// formatNote says in words what a format is.
func formatNote(format string) string {
	switch format {
	case "email":
		return "an email address"
	case "uri":
		return "a URI"
	case "date":
		return "a date such as 2026-07-28"
	case "date-time":
		return "a time such as 2026-07-28T09:30:00Z"
	default:
		return format
	}
}

// skipNote says how to leave a field out.
func skipNote(preset jsontext.Value) string {
	if len(preset) > 0 {
		return "optional, :skip leaves it out"
	}
	return "optional"
}

// review shows a filled-in form and asks whether to send it. False is: fill it in
// again.
func (i *Interviewer) review(ctx context.Context, form *ask.Form, values map[string]jsontext.Value) (bool, error) {
	i.printf("\n  You are about to send:\n")
	for _, field := range form.Fields {
		value, ok := values[field.Name]
		if !ok {
			continue
		}
		title := field.Title
		if title == "" {
			title = field.Name
		}
		i.printf("    %s: %s\n", Line(title), Line(field.Show(value)))
	}
	for {
		typed, err := i.prompt(ctx, "Send, edit, decline or cancel? [s/e/d/c] ")
		if err != nil {
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(typed)) {
		case "s", "send", "y", "yes":
			return true, nil
		case "e", "edit":
			return false, nil
		case "d", "decline":
			return false, &acted{ask.Decline}
		case "c", "cancel":
			return false, &acted{ask.Cancel}
		}
		i.printf("  Type s to send, e to change it, d to decline (say no) or c to cancel (say nothing).\n")
	}
}
