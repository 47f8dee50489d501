// Duplicates, hosts, lines, mix and records set aside.
import { useState } from "preact/hooks";
import { capital, count, exact, label, number, plural, share, words } from "./format";
import { type Doc, type Params, type Value, filtersOf, go, link, toggled, useAnswer } from "./state";
import { Bar, Card, DocLink, Figure, Name, Pager, Table, Waiting } from "./ui";

type Reasons = [string, number][];

const Why = ({ reasons }: { reasons: Reasons }) => <>{reasons.map(([reason, n]) => <span class="chip" key={reason}><Name name={reason} /> <b>{count(n)}</b></span>)}</>;

/** Clusters of a page. */
const PAGE = 25;

export function Duplicates({ params }: { params: Params }) {
  interface Found {
    clusters: { key: string; removed: number; kept_row: number | null; title: string | null; url: string | null; first: number; reasons: Reasons }[];
    all: number; sizes: [number, number][]; hosts: Value[];
  }
  const first = Number(params.first ?? 0) || 0;
  const asked = useAnswer<Found>("clusters", { ...filtersOf(params), first: String(first), most: String(PAGE) });
  return (
    <Waiting asked={asked} empty={(f) => f.all === 0} nothing={Object.keys(filtersOf(params)).length ? undefined : "No document of this run was removed as the copy of another."}>
      {(found) => {
        const most = Math.max(...found.sizes.map(([size]) => size), 1);
        const lost = found.sizes.reduce((sum, [size, n]) => sum + size * n, 0);
        return (
          <>
            <dl class="figures">
              <Figure label="Clusters">{count(found.all)}</Figure>
              <Figure label="Copies removed" kind="removed">{count(lost)}</Figure>
              <Figure label="Largest cluster">{count(most + 1)}</Figure>
              <Figure label="Clusters of two">{count(found.sizes.find(([s]) => s === 1)?.[1] ?? 0)}</Figure>
            </dl>
            <div class="two">
              <Card title="Clusters by size">
                <Table caption="Clusters" class="clusters">
                  <thead><tr><th scope="col">Kept document</th><th scope="col" class="n">Removed</th><th scope="col" class="meter"><span class="hidden">Size</span></th><th scope="col">Reasons</th></tr></thead>
                  <tbody>
                    {found.clusters.map((c) => (
                      <tr key={c.key}>
                        <th scope="row"><DocLink doc={{ title: c.title, url: c.url ?? "a document of another run", row: c.kept_row ?? c.first } as Doc} params={params} /></th>
                        <td class="n" data-label="Removed">{count(c.removed)}</td>
                        <td class="meter"><Bar kept={0} removed={c.removed} most={most} /></td>
                        <td class="why"><Why reasons={c.reasons} /></td>
                      </tr>
                    ))}
                  </tbody>
                </Table>
                <Pager first={first} page={PAGE} all={found.all} go={(to) => go("duplicates", { ...filtersOf(params), first: to ? String(to) : "" })} />
              </Card>
              <Card title="Hosts that lose most">
                <Table caption="Hosts by duplicates">
                  <thead><tr><th scope="col">Host</th><th scope="col" class="n">Duplicates</th></tr></thead>
                  <tbody>{found.hosts.map((h) => <tr key={h.value}><th scope="row"><a href={link("duplicates", toggled(params, "host", h.value))}><bdi><Name name={label("host", h.value)} /></bdi></a></th><td class="n" data-label="Duplicates">{count(h.documents)}</td></tr>)}</tbody>
                </Table>
              </Card>
            </div>
          </>
        );
      }}
    </Waiting>
  );
}

const ORDERS = ["tokens", "documents", "removed", "characters"];

export function Hosts({ params }: { params: Params }) {
  const order = params.order ?? "tokens";
  const asked = useAnswer<{ values: (Value & { reasons: Reasons; personal: number })[]; all: number }>("hosts", { ...filtersOf(params), order });
  return (
    <Waiting asked={asked} empty={(f) => f.all === 0}>
      {(found) => (
          <Card title={plural(found.all, "host")} note={found.all > found.values.length ? `the first ${count(found.values.length)} by ${order}` : undefined}>
            <label class="phone">Order by <select value={order} onChange={(e) => go("hosts", { ...filtersOf(params), order: e.currentTarget.value })}>
              {ORDERS.map((name) => <option key={name} value={name}>{words(name)}</option>)}
            </select></label>
            <Table caption="Hosts" class="hosts">
              <thead><tr>
                <th scope="col">Host</th>
                {ORDERS.map((name) => <th scope="col" class="n" key={name} aria-sort={order === name ? "descending" : undefined}><button type="button" onClick={() => go("hosts", { ...filtersOf(params), order: name })}>{words(name)}<span aria-hidden="true">{order === name ? " ↓" : ""}</span></button></th>)}
                <th scope="col" class="n">Kept share</th><th scope="col" class="n">Personal data</th><th scope="col">Main reasons</th>
              </tr></thead>
              <tbody>
                {found.values.map((v) => (
                  <tr key={v.value}>
                    <th scope="row"><a href={link("documents", { ...filtersOf(params), host: v.value })}><bdi><Name name={label("host", v.value)} /></bdi></a></th>
                    {ORDERS.map((name) => <td class="n" key={name} data-label={capital(name)}>{count(v[name as keyof Value] as number)}</td>)}
                    <td class="n" data-label="Kept share">{share(v.kept, v.documents)}</td>
                    <td class={v.personal ? "n" : "n none"} data-label="Personal data">{v.personal ? count(v.personal) : "–"}</td>
                    <td class="why" data-label={v.reasons.length ? "Reasons" : undefined}><Why reasons={v.reasons} /></td>
                  </tr>
                ))}
              </tbody>
            </Table>
          </Card>
      )}
    </Waiting>
  );
}

type Row = Record<string, unknown>;
const cell = (v: unknown): string => (typeof v === "number" ? number(v) : v === null || v === undefined || v === "" ? "–" : typeof v === "object" ? JSON.stringify(v) : String(v));

/** A table of whatever columns the rows have. */
export function Rows({ rows, caption, most = 200, order }: { rows: Row[]; caption: string; most?: number; order?: string[] }) {
  const [all, setAll] = useState(false);
  const names = order ?? [...new Set(rows.flatMap((r) => Object.keys(r)))];
  const numeric = (name: string) => rows.some((r) => typeof r[name] === "number" || /^[<>]?[\d.]+ %$/.test(String(r[name])));
  const within = (name: string, most: number) => rows.every((r) => cell(r[name]).length <= most);
  return (
    <>
      <Table caption={caption}>
        <thead><tr>{names.map((n) => <th scope="col" key={n} class={numeric(n) ? "n" : undefined}>{words(n)}</th>)}</tr></thead>
        <tbody>{(all ? rows : rows.slice(0, most)).map((r, i) => <tr key={i}>{names.map((n) => <td key={n} class={`${numeric(n) ? "n" : n === "line" ? "line" : within(n, 10) ? "short" : within(n, 24) ? "" : "long"} ${cell(r[n]) === "–" ? "none" : ""}`.trim() || undefined} data-label={capital(words(n))} dir={n === "line" ? "auto" : undefined}>{cell(r[n])}</td>)}</tr>)}</tbody>
      </Table>
      {!all && rows.length > most && <p><button type="button" onClick={() => setAll(true)}>Show all {count(rows.length)}</button></p>}
    </>
  );
}

export function Lines({ params }: { params: Params }) {
  const asked = useAnswer<{ stage: string; notes: Record<string, unknown>; removed: Row[] }[]>("lines");
  return (
    <Waiting asked={asked} empty={(f) => f.length === 0} nothing="No stage of this run cuts lines.">
      {(stages) => stages.map((s) => {
        const estimate = Object.values(s.notes).find((v) => v && typeof v === "object" && "good_characters" in (v as Row)) as Row | undefined;
        const verdicts = [...new Set(s.removed.map((r) => String(r.verdict)))].sort();
        const kinds = [...new Set(verdicts.map((v) => v.split(":")[0]))];  // cut, kept
        const verdict = params.verdict ?? (kinds.includes("cut") ? "cut" : "all");
        const fits = (v: unknown) => verdict === "all" || v === verdict || String(v).startsWith(`${verdict}:`);
        const percent = (v: unknown) => (typeof v === "number" ? share(v, 1) : "–");
        const shown = s.removed.filter((r) => fits(r.verdict))
          .map((r) => ({ ...r, "at edges": percent(r.edge_share), "of the host’s pages": percent(r.host_share), "good share": percent(r.good_share) }));
        return (
          <div key={s.stage}>
            {estimate && (
              <dl class="figures">
                <Figure label="Characters cut" kind="removed">{count(Number(estimate.characters_cut))}</Figure>
                <Figure label="Good text among them, estimated" kind="kept">{count(Number(estimate.good_characters))} <small>{share(Number(estimate.good_characters), Number(estimate.characters_cut))}</small></Figure>
              </dl>
            )}
            <Card title="Frequent lines" note={`as ${s.stage} judged them`}>
              <p class="note explained">Documents and hosts are those of the line in any spelling of upper and lower case; occurrences are of this one. At edges: the share of occurrences at the beginning or end of a text. Of the host’s pages: the share that has the line. Good share: the share of lines cut by this verdict that readers found to be content (docs/dedup.md).</p>
              {verdicts.length > 1 && <label class="inline">Show <select value={verdict} onChange={(e) => go("lines", { ...filtersOf(params), verdict: e.currentTarget.value }, true)}>
                <option value="all">all lines</option>
                {kinds.length > 1 && kinds.map((k) => <option key={k} value={k}>all {k}</option>)}
                {verdicts.map((v) => <option key={v} value={v}>{v}</option>)}
              </select></label>}
              {shown.length ? <Rows caption="Frequent lines" rows={shown} order={["line", "verdict", "documents", "hosts", "occurrences", "at edges", "of the host’s pages", "good share"]} /> : <p class="empty">No line is frequent enough to be judged so.</p>}
            </Card>
          </div>
        );
      })}
    </Waiting>
  );
}

interface MixRow { domain: string; wanted: number; available: number; kept: number; epochs: number; share: number; kept_share: number; documents: number; source?: string }

export function Mix() {
  const asked = useAnswer<{ stage: string; notes: { mix?: MixRow[]; inputs?: MixRow[]; lacking?: string; advice?: string[]; budget?: number } }[]>("mix");
  return (
    <Waiting asked={asked} empty={(f) => f.length === 0} nothing="This run has no stage that mixes documents.">
      {(found) => found.map(({ stage, notes }) => (
        <div key={stage}>
          <Card title={stage === "mix" ? "Mix" : stage} note={`in tokens${notes.budget !== undefined ? `, of a budget of ${count(notes.budget)}` : ""}`}>
            {notes.mix && <MixTable rows={notes.mix} name="domain" caption="By domain" />}
            <ul class="advice">{[notes.lacking ?? [], notes.advice ?? []].flat().map((a) => <li key={a}>{a}</li>)}</ul>
          </Card>
          {notes.inputs && new Set(notes.inputs.map((r) => r.source)).size > 1 && <Card title="By domain and input" note="in tokens"><MixTable rows={notes.inputs} name="source" caption="By input" /></Card>}
        </div>
      ))}
    </Waiting>
  );
}

const percent = (v: number) => share(v, 1);
const MIX: [string, keyof MixRow, (v: number) => string][] = [
  ["Distinct tokens", "available", count], ["Epochs", "epochs", (v) => v.toFixed(2)], ["Tokens written", "kept", count], ["Wanted", "wanted", count],
  ["Share written", "kept_share", percent], ["Share wanted", "share", percent], ["Documents", "documents", count],
];

function MixTable({ rows, name, caption }: { rows: MixRow[]; name: "domain" | "source"; caption: string }) {
  const columns = MIX.filter(([, key]) => rows[0]?.[key] !== undefined);
  const wanted = rows[0]?.wanted !== undefined;
  return (
    <Table caption={caption}>
      <thead><tr><th scope="col">Domain</th>{name === "source" && <th scope="col">Input</th>}
        {columns.map(([title]) => <th scope="col" class="n" key={title}>{title}</th>)}{wanted && <th scope="col" class="meter">Filled</th>}</tr></thead>
      <tbody>
        {rows.map((r, i) => (
          <tr key={i}>
            <th scope="row">{words(r.domain)}</th>{name === "source" && <td data-label="Input">{r.source}</td>}
            {columns.map(([title, key, shown]) => <td class="n" data-label={title} key={title}>{shown(Number(r[key]))}</td>)}
            {wanted && <td class="meter" data-label="Filled"><small>{share(Math.min(r.kept, r.wanted), r.wanted)}</small><Bar kept={r.kept} most={Math.max(r.wanted, r.kept)} /></td>}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export function Errors() {
  interface Found { records: number | null; documents: number; reasons: { what: string; reason: string; records: number }[]; rows: Row[]; errors: Row[]; most: number }
  const asked = useAnswer<Found>("errors");
  return (
    <Waiting asked={asked}>
      {(found) => {
        const total = (what: string) => found.reasons.filter((r) => r.what === what).reduce((sum, r) => sum + r.records, 0);
        const rows = [...found.rows, ...found.errors].map((r) => ({ what: r.kind === "mended" ? "repaired" : r.kind === "set_aside" ? "set aside" : "failed", reason: r.reason, URL: exact(String(r.url ?? "")), detail: r.detail, record: source(r.source) }));
        return (
          <>
            <dl class="figures">
              {found.records !== null && <Figure label="Records read">{count(found.records)}</Figure>}
              <Figure label="Documents" kind="kept">{count(found.documents)}</Figure>
              <Figure label="Not documents">{count(total("not a document"))}</Figure>
              <Figure label="Set aside" kind={total("set aside") ? "removed" : ""}>{count(total("set aside"))}</Figure>
              <Figure label="Repaired">{count(total("repaired"))}</Figure>
            </dl>
            {found.reasons.length > 0 && <Card title="By reason"><Rows caption="By reason" rows={[...found.reasons].sort((a, b) => b.records - a.records) as unknown as Row[]} most={20} /></Card>}
            <Card title="Records" note={`set aside, repaired, failed${rows.length >= found.most ? `; the first ${count(found.most)} of each` : ""}`}>{rows.length ? <Rows caption="Records set aside" rows={rows} most={50} /> : <p class="empty">{found.reasons.length ? "Every record could be read." : "Every record was read, and is a document."}</p>}</Card>
          </>
        );
      }}
    </Waiting>
  );
}

const source = (s: unknown): string => (s && typeof s === "object" ? `${(s as Row).file}@${(s as Row).offset}` : "");
