import{$ as e,F as t,L as n,Z as r,c as i,g as a,i as o,p as s,r as c,z as l}from"./index-CMCV4_T0.js";function u(e){return`${e.slice(0,6)}…`}var d=e=>`'${e.replaceAll(`'`,`'\\''`)}'`,f=e=>JSON.stringify(e),p=({url:e,key:t},n,r)=>`package main

import (
	"context"
	"fmt"
	"log"
${r.map(e=>`	"${e}"\n`).join(``)}
	"github.com/lectern-dev/lectern/client"
)

func main() {
	c, err := client.New(${f(e)}, client.WithAPIKey(${f(t)}))
	if err != nil {
		log.Fatal(err)
	}
${n}
}
`,m=({url:e,key:t})=>`import { Client } from "@lectern/client";

const client = new Client({ baseURL: ${f(e)}, apiKey: ${f(t)} });
`,h=[{id:`entries`,name:`Read entries`,what:`All entries that were updated in 2026, the oldest first.`,curl:({url:e,project:t,key:n})=>`curl -H ${d(`X-Api-Key: ${n}`)} -H 'Accept: application/x-ndjson' \\
  ${d(`${e}/projects/${encodeURIComponent(t)}/entries?updated_after=2026-01-01&direction=ASC&limit=1000000`)}
`,go:e=>p(e,`	query := client.EntryQuery{UpdatedAfter: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Direction: client.Ascending}
	for entry, err := range c.Entries(context.Background(), ${f(e.project)}, query) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.EntryID, entry.Data)
	}`,[`time`]),typescript:e=>`${m(e)}
for await (const entry of client.entries(${f(e.project)}, { updated_after: "2026-01-01", direction: "ASC" })) {
  console.log(entry.entry_id, entry.entry_data);
}
`},{id:`changes`,name:`Follow changes`,what:`Everything that is stored or removed, from the beginning, then as it happens. Keep the cursor to go on later.`,curl:({url:e,project:t,key:n})=>`curl -i -H ${d(`X-Api-Key: ${n}`)} \\
  ${d(`${e}/projects/${encodeURIComponent(t)}/entries-changes?wait=60`)}
# Next time, add &cursor= with the value of X-Next-Cursor.
`,go:e=>p(e,`	for page, err := range c.Follow(context.Background(), ${f(e.project)}, client.ChangeQuery{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.Changes), "changes; next time from", page.NextCursor)
	}`,[]),typescript:e=>`${m(e)}
for await (const page of client.follow(${f(e.project)})) {
  console.log(page.changes.length, "changes; next time from", page.nextCursor);
}
`}],g=[{id:`curl`,name:`curl`},{id:`go`,name:`Go`},{id:`typescript`,name:`TypeScript`}];function _({project:e}){let[t,n]=r(`curl`),i=l.value?.key??``,a={url:location.origin,project:e,key:u(i)};return s(`section`,{class:`page`,children:[s(o,{title:`Connect`,lead:`The same requests in three languages, with the values of this project.`}),s(`div`,{class:`card`,children:[s(`div`,{class:`actions`,role:`group`,"aria-label":`Language`,children:g.map(({id:e,name:r})=>s(`button`,{type:`button`,class:`quiet small`,"aria-pressed":t===e,onClick:()=>n(e),children:r},e))}),h.map(e=>s(`section`,{class:`sample`,"aria-labelledby":`sample-${e.id}`,children:[s(`div`,{class:`pagehead`,children:[s(`div`,{children:[s(`h2`,{id:`sample-${e.id}`,children:e.name}),s(`p`,{class:`muted small`,children:e.what})]}),s(`div`,{class:`actions`,children:[s(c,{text:()=>e[t](a)}),s(c,{text:()=>e[t]({...a,key:i}),label:`Copy with the key`})]})]}),s(`pre`,{class:`raw code`,tabIndex:0,"aria-label":`${e.name}, ${t}`,children:e[t](a)})]},e.id)),s(`p`,{class:`muted small`,children:[`Go: `,s(`code`,{children:`go get github.com/lectern-dev/lectern/client`}),`. TypeScript: `,s(`code`,{children:`npm install @lectern/client`}),`. The whole API is described at`,` `,s(`a`,{href:`/docs`,target:`_blank`,rel:`noreferrer`,children:`/docs`}),`.`]})]}),s(y,{project:e})]})}function v(e,t){let n=(e,t)=>Number(RegExp(`;\\s*${t}=(\\d+)`).exec(e)?.[1]??NaN);return{quota:n(e,`q`),window:n(e,`w`),remaining:n(t,`r`)}}function y({project:r}){let o=n(async({client:e,signal:t})=>{for await(let n of e.embeddables(r,{limit:1},{signal:t}))break;return!0},[r]),c=t.value,l=c&&v(c.policy,c.state);return s(`section`,{class:`card`,"aria-labelledby":`limits`,children:[s(`h2`,{id:`limits`,children:`Limits of the key`}),s(i,{load:o,what:`the limits`,children:()=>c&&l?s(e,{children:[s(`div`,{class:`figures`,children:[s(`p`,{class:`figure`,children:[s(`b`,{children:a(l.quota)}),` `,s(`span`,{class:`muted small`,children:[`requests at once, then `,a(l.quota/l.window),` a second`]})]}),s(`p`,{class:`figure`,children:[s(`b`,{"data-figure":`remaining`,children:a(l.remaining)}),` `,s(`span`,{class:`muted small`,children:`left at the moment`})]})]}),s(`p`,{class:`muted small wrap`,children:[s(`code`,{children:[`RateLimit-Policy: `,c.policy]}),` `,s(`br`,{}),s(`code`,{children:[`RateLimit: `,c.state]})]})]}):s(`p`,{class:`muted`,children:`The server sets no limits.`})})]})}export{_ as Connect};