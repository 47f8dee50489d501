// Duplicates, hosts, lines, mix and records set aside.
import { useState } from "preact/hooks";
import { count, named, number, share, words } from "./format";
import { type Params, type Value, filtersOf, go, link, toggled, useAnswer } from "./state";
import { Bar, Card, Figure, Table, Waiting } from "./ui";

type Reasons = [string, number][];

const Why = ({ reasons }: { reasons: Reasons }) => <>{reasons.map(([reason, n]) => <span class="chip" key={reason}>{reason} <b>{count(n)}</b></span>)}</>;

export function Duplicates({ params }: { params: Params }) {
  interface Found {
    clusters: { key: string; removed: number; kept_row: number | null; url: string | null; first: number; reasons: Reasons }[];
    all: number; sizes: [number, number][]; hosts: Value[];
  }
  const asked = useAnswer<Found>("clusters", filtersOf(params));
  return (
    <Waiting asked={asked} empty={(f) => f.all === 0}>
      {(found) => {
        const most = Math.max(...found.clusters.map((c) => c.removed), 1);
        const lost = found.sizes.reduce((sum, [size, n]) => sum + size * n, 0);
        return (
          <>
            <dl class="figures">
              <Figure label="Clusters">{count(found.all)}</Figure>
              <Figure label="Documents that went for another" kind="removed">{count(lost)}</Figure>
              <Figure label="Largest cluster">{count(most + 1)}</Figure>
              <Figure label="Pairs">{count(found.sizes.find(([s]) => s === 1)?.[1] ?? 0)}</Figure>
            </dl>
            <div class="two">
              <Card title="Clusters by size" note={found.all > found.clusters.length ? `the ${count(found.clusters.length)} largest` : undefined}>
                <Table caption="Clusters">
                  <thead><tr><th scope="col">Kept in their place</th><th scope="col" class="n">Removed</th><th scope="col" class="meter"><span class="hidden">Size</span></th><th scope="col">Why</th></tr></thead>
                  <tbody>
                    {found.clusters.map((c) => (
                      <tr key={c.key}>
                        <th scope="row"><a class="url" href={link("document", { ...filtersOf(params), row: String(c.kept_row ?? c.first) })}>{c.url ?? "a document of another run"}</a></th>
                        <td class="n">{count(c.removed)}</td>
                        <td class="meter"><Bar kept={0} removed={c.removed} most={most} /></td>
                        <td><Why reasons={c.reasons} /></td>
                      </tr>
                    ))}
                  </tbody>
                </Table>
              </Card>
              <Card title="Hosts that lose most">
                <Table caption="Hosts by duplicates">
                  <thead><tr><th scope="col">Host</th><th scope="col" class="n">Duplicates</th></tr></thead>
                  <tbody>{found.hosts.map((h) => <tr key={h.value}><th scope="row"><a href={link("duplicates", toggled(params, "host", h.value))}>{named(h.value)}</a></th><td class="n">{count(h.documents)}</td></tr>)}</tbody>
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
          <Card title={`${count(found.all)} hosts`} note={found.all > found.values.length ? `the first ${count(found.values.length)} by ${order}` : undefined}>
            <Table caption="Hosts">
              <thead><tr>
                <th scope="col">Host</th>
                {ORDERS.map((name) => <th scope="col" class="n" key={name} aria-sort={order === name ? "descending" : undefined}><button type="button" onClick={() => go("hosts", { ...filtersOf(params), order: name })}>{words(name)}<span aria-hidden="true">{order === name ? " ↓" : ""}</span></button></th>)}
                <th scope="col" class="n">Kept share</th><th scope="col" class="n">Personal data</th><th scope="col">Why they go</th>
              </tr></thead>
              <tbody>
                {found.values.map((v) => (
                  <tr key={v.value}>
                    <th scope="row"><a href={link("documents", { ...filtersOf(params), host: v.value })}>{named(v.value)}</a></th>
                    {ORDERS.map((name) => <td class="n" key={name} data-label={words(name)}>{count(v[name as keyof Value] as number)}</td>)}
                    <td class="n" data-label="Kept share">{share(v.kept, v.documents)}</td>
                    <td class="n" data-label="Personal data">{v.personal ? count(v.personal) : "–"}</td>
                    <td><Why reasons={v.reasons} /></td>
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
function Rows({ rows, caption, most = 200, order }: { rows: Row[]; caption: string; most?: number; order?: string[] }) {
  const [all, setAll] = useState(false);
  const names = order ?? [...new Set(rows.flatMap((r) => Object.keys(r)))];
  const numeric = (name: string) => rows.some((r) => typeof r[name] === "number");
  return (
    <>
      <Table caption={caption}>
        <thead><tr>{names.map((n) => <th scope="col" key={n} class={numeric(n) ? "n" : undefined}>{words(n)}</th>)}</tr></thead>
        <tbody>{(all ? rows : rows.slice(0, most)).map((r, i) => <tr key={i}>{names.map((n) => <td key={n} class={numeric(n) ? "n" : n === "line" ? "line" : undefined} data-label={words(n)} dir={n === "line" ? "auto" : undefined}>{cell(r[n])}</td>)}</tr>)}</tbody>
      </Table>
      {!all && rows.length > most && <p><button type="button" onClick={() => setAll(true)}>Show all {count(rows.length)}</button></p>}
    </>
  );
}

export function Lines() {
  const asked = useAnswer<{ stage: string; notes: Record<string, unknown>; removed: Row[] }[]>("lines");
  const [verdict, setVerdict] = useState("");
  return (
    <Waiting asked={asked} empty={(f) => f.length === 0}>
      {(stages) => stages.map((s) => {
        const estimate = Object.values(s.notes).find((v) => v && typeof v === "object" && "good_characters" in (v as Row)) as Row | undefined;
        const verdicts = [...new Set(s.removed.map((r) => String(r.verdict)))].sort();
        const shown = s.removed.filter((r) => !verdict || r.verdict === verdict);
        return (
          <div key={s.stage}>
            {estimate && (
              <dl class="figures">
                <Figure label="Characters cut" kind="removed">{count(Number(estimate.characters_cut))}</Figure>
                <Figure label="Good text among them, estimated" kind="kept">{count(Number(estimate.good_characters))} <small>{share(Number(estimate.good_characters), Number(estimate.characters_cut))}</small></Figure>
              </dl>
            )}
            <Card title="Frequent lines" note={`as ${s.stage} judged them`}>
              <label class="inline">Verdict <select value={verdict} onChange={(e) => setVerdict(e.currentTarget.value)}>
                <option value="">all</option>{verdicts.map((v) => <option key={v} value={v}>{v}</option>)}
              </select></label>
              {shown.length ? <Rows caption="Frequent lines" rows={shown} order={["line", "verdict", "documents", "hosts", "occurrences", "edge_share", "host_share"]} /> : <p class="empty">This run kept no list of its frequent lines.</p>}
            </Card>
          </div>
        );
      })}
    </Waiting>
  );
}

interface MixRow { domain: string; wanted: number; available: number; kept: number; epochs: number; share: number; kept_share: number; documents: number; source?: string }

export function Mix() {
  const asked = useAnswer<{ stage: string; notes: { mix?: MixRow[]; inputs?: MixRow[]; advice?: string[]; budget?: number } }[]>("mix");
  return (
    <Waiting asked={asked} empty={(f) => f.length === 0}>
      {(found) => found.map(({ stage, notes }) => (
        <div key={stage}>
          <Card title={stage === "mix" ? "Mix" : stage} note={notes.budget !== undefined ? `a budget of ${count(notes.budget)} tokens` : undefined}>
            {notes.mix && <MixTable rows={notes.mix} name="domain" caption="By domain" />}
            {notes.advice && notes.advice.length > 0 && <ul class="advice">{notes.advice.map((a) => <li key={a}>{a}</li>)}</ul>}
          </Card>
          {notes.inputs && <Card title="By domain and input"><MixTable rows={notes.inputs} name="source" caption="By input" /></Card>}
        </div>
      ))}
    </Waiting>
  );
}

function MixTable({ rows, name, caption }: { rows: MixRow[]; name: "domain" | "source"; caption: string }) {
  const most = Math.max(...rows.flatMap((r) => [r.wanted ?? 0, r.available, r.kept]), 1);
  return (
    <Table caption={caption}>
      <thead><tr><th scope="col">Domain</th>{name === "source" && <th scope="col">Input</th>}
        {rows[0]?.wanted !== undefined && <th scope="col" class="n">Wanted</th>}<th scope="col" class="n">Available</th><th scope="col" class="n">Got</th><th scope="col" class="n">Share</th>
        {rows[0]?.share !== undefined && <th scope="col" class="n">Wanted share</th>}<th scope="col" class="n">Epochs</th><th scope="col" class="n">Documents</th><th scope="col" class="meter"><span class="hidden">Got</span></th></tr></thead>
      <tbody>
        {rows.map((r, i) => (
          <tr key={i}>
            <th scope="row">{words(r.domain)}</th>{name === "source" && <td>{r.source}</td>}
            {rows[0]?.wanted !== undefined && <td class="n" data-label="Wanted">{count(r.wanted)}</td>}
            <td class="n" data-label="Available">{count(r.available)}</td><td class="n" data-label="Got">{count(r.kept)}</td>
            <td class="n" data-label="Share">{share(r.kept_share, 1)}</td>{rows[0]?.share !== undefined && <td class="n" data-label="Wanted share">{share(r.share, 1)}</td>}
            <td class="n" data-label="Epochs">{r.epochs.toFixed(2)}</td><td class="n" data-label="Documents">{count(r.documents)}</td>
            <td class="meter"><Bar kept={r.kept} removed={Math.max(0, (r.wanted ?? 0) - r.kept)} most={most} /></td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export function Errors() {
  interface Found { records: number | null; documents: number; reasons: { what: string; reason: string; records: number }[]; rows: Row[]; errors: Row[] }
  const asked = useAnswer<Found>("errors");
  return (
    <Waiting asked={asked}>
      {(found) => {
        const total = (what: string) => found.reasons.filter((r) => r.what === what).reduce((sum, r) => sum + r.records, 0);
        const rows = [...found.rows, ...found.errors].map((r) => ({ what: r.kind === "mended" ? "repaired" : r.kind === "set_aside" ? "set aside" : "failed", reason: r.reason, url: r.url, detail: r.detail, record: source(r.source) }));
        return (
          <>
            <dl class="figures">
              {found.records !== null && <Figure label="Records read">{count(found.records)}</Figure>}
              <Figure label="Documents" kind="kept">{count(found.documents)}</Figure>
              <Figure label="Not documents">{count(total("not a document"))}</Figure>
              <Figure label="Set aside" kind="removed">{count(total("set aside"))}</Figure>
              <Figure label="Repaired">{count(total("repaired"))}</Figure>
            </dl>
            <div class="two">
              <Card title="Records" note="set aside, repaired, failed">{rows.length ? <Rows caption="Records set aside" rows={rows} /> : <p class="empty">Every record was read.</p>}</Card>
              <Card title="By reason">{found.reasons.length ? <Rows caption="By reason" rows={[...found.reasons].sort((a, b) => b.records - a.records) as unknown as Row[]} /> : <p class="empty">Every record is a document.</p>}</Card>
            </div>
          </>
        );
      }}
    </Waiting>
  );
}

const source = (s: unknown): string => (s && typeof s === "object" ? `${(s as Row).file}@${(s as Row).offset}` : "");
