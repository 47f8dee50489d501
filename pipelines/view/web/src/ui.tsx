// Parts that several views share.
import { type ComponentChildren, Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { compact, count, day, exact, label, languageName, share, value, words } from "./format";
import { type Asked, type Doc, type Params, type Value, filtersOf, link, toggled } from "./state";

export function Waiting<T>({ asked, empty, nothing = "Nothing here under these filters.", children }: {
  asked: Asked<T>; empty?: (data: T) => boolean; nothing?: string; children: (data: T) => ComponentChildren;
}) {
  if (asked.error) return <p class="problem" role="alert">{asked.error}</p>;
  if (asked.data === undefined) return <p class="loading" role="status">Loading…</p>;
  if (empty?.(asked.data)) return <p class="empty">{nothing}</p>;
  return <div class={asked.loading ? "stale" : undefined} aria-busy={asked.loading}>{children(asked.data)}</div>;
}

export function Card({ title, note, children, class: kind = "" }: {
  title?: ComponentChildren; note?: ComponentChildren; children: ComponentChildren; class?: string;
}) {
  return (
    <section class={`card ${kind}`}>
      {title && <header><h2>{title}</h2>{note && <p class="note">{note}</p>}</header>}
      {children}
    </section>
  );
}

export function Figure({ label, children, kind = "" }: { label: string; children: ComponentChildren; kind?: string }) {
  return <div class={`figure ${kind}`}><dt>{label}</dt><dd>{children}</dd></div>;
}

/** A bar of two parts: kept and removed, against the widest one of its list. */
export function Bar({ kept, removed = 0, most }: { kept: number; removed?: number; most: number }) {
  const part = (n: number) => ({ inlineSize: `${most ? (100 * n) / most : 0}%` });
  return <span class="bar" aria-hidden="true"><i class="kept" style={part(kept)} /><i class="removed" style={part(removed)} /></span>;
}

/** Values of a dimension; each sets or takes away the filter. */
export function Facet({ title, name, values, all, view, params }: {
  title: string; name: string; values: Value[]; all: number; view: string; params: Params;
}) {
  const most = Math.max(...values.map((v) => v.documents), 1);
  return (
    <Card title={title} note={all > values.length ? `${values.length} of ${count(all)}` : undefined} class="facet">
      <ul>
        {values.map((v) => (
          <li key={v.value}>
            <a href={link(view, toggled(params, name, v.value))} aria-current={params[name] === v.value ? "true" : undefined}
              title={`${count(v.documents)} documents, ${count(v.kept)} kept (${share(v.kept, v.documents)})`}>
              <span class="name"><bdi>{label(name, v.value)}</bdi>{name === "language" && <small> {languageName(v.value)}</small>}</span>
              <span class="n">{compact(v.documents)}</span>
              <Bar kept={v.kept} removed={v.removed} most={most} />
              <span class="hidden">documents, {share(v.kept, v.documents)} kept</span>
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** The name of a rule or host, which may break after its dots and underscores. */
export function Name({ name }: { name: string }) {
  return <>{name.split(/(?<=[._])/).map((part, i) => <Fragment key={i}>{i > 0 && <wbr />}{part}</Fragment>)}</>;
}

export function Fate({ doc }: { doc: Pick<Doc, "stage" | "reason"> }) {
  return doc.reason === null
    ? <span class="fate kept">kept</span>
    : <span class="fate removed" title={`removed by ${doc.stage}`}>{doc.reason}</span>;
}

export function DocLink({ doc, params }: { doc: Doc; params: Params }) {
  return (
    <a class="doclink" href={link("document", { ...filtersOf(params), row: String(doc.row) })}>
      <span class="title"><bdi>{doc.title || exact(doc.url || doc.id || "Untitled")}</bdi></span>
      {doc.title && <span class="url"><bdi>{exact(doc.url || "no URL")}</bdi></span>}
    </a>
  );
}

/** Buttons to the pages of a list; `go` leads to the one that begins with a number. */
export function Pager({ first, page, all, go }: { first: number; page: number; all: number; go: (first: number) => void }) {
  if (all <= page && first === 0) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={first === 0} onClick={() => go(Math.max(0, first - page))}>← Previous</button>
      <span>{count(first + 1)}–{count(Math.min(first + page, all))} of {count(all)}</span>
      <button type="button" disabled={first + page >= all} onClick={() => go(first + page)}>Next →</button>
    </nav>
  );
}

export interface Column { key: string; label: string; sortable?: boolean; numeric?: boolean; cell: (doc: Doc) => ComponentChildren }

export const COLUMNS: Column[] = [
  { key: "fate", label: "Outcome", sortable: true, cell: (d) => <Fate doc={d} /> },
  { key: "value", label: "Value", sortable: true, numeric: true, cell: (d) => value(d.reason, d.value, d.value_text) },
  { key: "language", label: "Language", sortable: true, cell: (d) => d.language || "–" },
  { key: "topic", label: "Topic", sortable: true, cell: (d) => words(d.topic) || "–" },
  { key: "characters", label: "Characters", sortable: true, numeric: true, cell: (d) => count(d.characters) },
  { key: "tokens", label: "Tokens", sortable: true, numeric: true, cell: (d) => (d.tokens === null ? "–" : count(d.tokens)) },
  { key: "date", label: "Date", sortable: true, numeric: true, cell: (d) => day(d.date) },
];

export function DocTable({ rows, params, sort, down, onSort, columns = COLUMNS, caption }: {
  rows: Doc[]; params: Params; sort?: string; down?: boolean; onSort?: (key: string) => void; columns?: Column[]; caption: string;
}) {
  return (
    <Table caption={caption} class="documents">
      <thead><tr>
        <th scope="col">Document</th>
        {columns.map((c) => (
          <th scope="col" key={c.key} class={c.numeric ? "n" : undefined}
            aria-sort={sort === c.key ? (down ? "descending" : "ascending") : undefined}>
            {c.sortable && onSort
              ? <button type="button" onClick={() => onSort(c.key)}>{c.label}<span aria-hidden="true">{sort === c.key ? (down ? " ↓" : " ↑") : ""}</span></button>
              : c.label}
          </th>
        ))}
      </tr></thead>
      <tbody>
        {rows.map((d) => (
          <tr key={d.row}>
            <th scope="row"><DocLink doc={d} params={params} />{d.passage && <p class="passage">…{d.passage}…</p>}</th>
            {columns.map((c) => {
              const shown = c.cell(d);
              return <td key={c.key} data-label={c.label} class={`${c.numeric ? "n" : ""} ${shown === "–" ? "none" : ""}`.trim() || undefined}>{shown}</td>;
            })}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** A table that scrolls inside of its own box, which the keyboard reaches. */
export function Table({ caption, children, class: kind = "" }: { caption: string; children: ComponentChildren; class?: string }) {
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class={kind || undefined}><caption class="hidden">{caption}</caption>{children}</table>
    </div>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy: JSX.MouseEventHandler<HTMLButtonElement> = () => {
    navigator.clipboard?.writeText(text).then(() => { setDone(true); setTimeout(() => setDone(false), 1500); });
  };
  return <button type="button" class="copy" onClick={copy}><span aria-live="polite">{done ? "Copied" : label}</span></button>;
}
