// Package answer is what the handlers of all nouns make their answers with: a Moment is what they read, a page is what they cut of
// a list, and Propose is how they change records. A change is guarded by the revisions of the records that it was made of, and it
// is made anew when one of them has changed meanwhile.
//
// It knows nothing of any call. Source has what every handler needs; the rooms of the nouns embed it in their types.
package answer
