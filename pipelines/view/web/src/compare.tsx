// Two runs side by side.
import { Fragment } from "preact";
import { compact, count, label, number, share, words } from "./format";
import { Chart, type Histogram } from "./signals";
import { type Doc, type Params, type Stage, type Value, filtersOf, go, link, useAnswer } from "./state";
import { Card, DocTable, Figure, Table, Waiting } from "./ui";

interface Mixed { stage: string; notes: { mix?: { domain: string; kept: number; kept_share: number; epochs: number }[] } }
interface Found {
  runs: [string, string]; documents: [number, number]; only: [number, number]; same: number;
  settings: [string, string | null, string | null][]; mixes: [Mixed[], Mixed[]]; signals: string[];
  flips: { was: string; now: string; documents: number; characters: number }[];
  funnels: [Stage[], Stage[]];
}

export function Compare({ params }: { params: Params }) {
  const asked = useAnswer<Found>("compare");
  return (
    <Waiting asked={asked}>
      {(found) => {
        const kept = found.funnels.map((f) => f[f.length - 1].documents_in - f[f.length - 1].documents_removed);
        const lost = found.flips.filter((f) => f.was === "kept").reduce((s, f) => s + f.documents, 0);
        const won = found.flips.filter((f) => f.now === "kept").reduce((s, f) => s + f.documents, 0);
        return (
          <>
            <p class="runs"><b>A</b> <code>{found.runs[0]}</code> <b>B</b> <code>{found.runs[1]}</code></p>
            <dl class="figures">
              <Figure label="Kept, A → B">{compact(kept[0])} <small>→ {compact(kept[1])}</small></Figure>
              <Figure label="Same outcome">{count(found.same)}</Figure>
              <Figure label="Only B keeps" kind="kept">{count(won)}</Figure>
              <Figure label="Only A keeps" kind="removed">{count(lost)}</Figure>
              <Figure label="In one run only, A · B">{count(found.only[0])} <small>· {count(found.only[1])}</small></Figure>
            </dl>
            <Card title="Changed outcomes" note="open a row for its documents">
              {found.flips.length === 0 ? <p class="empty">Every document has the same outcome.</p> : (
                <Table caption="Changed outcomes">
                  <thead><tr><th scope="col">In A</th><th scope="col">In B</th><th scope="col" class="n">Documents</th><th scope="col" class="n">Characters</th></tr></thead>
                  <tbody>{found.flips.slice(0, 200).map((f) => (
                    <tr key={f.was + f.now} aria-current={params.was === f.was && params.now === f.now ? "true" : undefined}>
                      <th scope="row" data-label="In A"><a href={link("compare", { ...filtersOf(params), was: f.was, now: f.now })}><Ended name={f.was} /></a></th>
                      <td data-label="In B"><Ended name={f.now} /></td>
                      <td class="n" data-label="Documents">{count(f.documents)}</td><td class="n" data-label="Characters">{count(f.characters)}</td>
                    </tr>
                  ))}</tbody>
                </Table>
              )}
            </Card>
            {params.was && params.now && <Flipped params={params} />}
            <Card title="Settings that differ">
              {found.settings.length === 0 ? <p class="empty">Both recipes have the same settings.</p> : (
                <Table caption="Settings that differ">
                  <thead><tr><th scope="col">Setting</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
                  <tbody>{found.settings.map(([key, a, b]) => <tr key={key}><th scope="row"><code>{key}</code></th><td data-label="A"><bdi>{a ?? "–"}</bdi></td><td data-label="B"><bdi>{b ?? "–"}</bdi></td></tr>)}</tbody>
                </Table>
              )}
            </Card>
            {found.signals.length > 0 && <Signal found={found} params={params} />}
            <div class="halves">
              <Card title="Funnels"><Funnels found={found} /></Card>
              <Kept />
              {found.mixes.some((m) => m.length > 0) && <Card title="Mix" note="in tokens" class="wide"><Mixes found={found} /></Card>}
            </div>
          </>
        );
      }}
    </Waiting>
  );
}

const Ended = ({ name }: { name: string }) => <span class={`fate ${name === "kept" ? "kept" : "removed"}`}>{name}</span>;

function Flipped({ params }: { params: Params }) {
  const asked = useAnswer<{ rows: Doc[] }>("flipped", { was: params.was, now: params.now });
  return <Card title={`${params.was} → ${params.now}`}><Waiting asked={asked} empty={(f) => f.rows.length === 0}>{(f) => <DocTable caption="Documents that flip" rows={f.rows} params={params} />}</Waiting></Card>;
}

const sign = (n: number) => (n > 0 ? `+${count(n)}` : n < 0 ? `−${count(-n)}` : "0");

/** Numbers of both runs by name, and what further columns say of them. */
function Pairs({ caption, head, rows, last, told }: { caption: string; head: string; rows: [string, number, number][]; last: string[]; told: (a: number, b: number) => string[] }) {
  return (
    <Table caption={caption}>
      <thead><tr><th scope="col">{head}</th>{["A", "B", ...last].map((title) => <th scope="col" class="n" key={title}>{title}</th>)}</tr></thead>
      <tbody>{rows.map(([name, a, b]) => <tr key={name}><th scope="row">{name}</th>{[count(a), count(b), ...told(a, b)].map((text, i) => <td class="n" key={i} data-label={["A", "B", ...last][i]}>{text}</td>)}</tr>)}</tbody>
    </Table>
  );
}

function Funnels({ found }: { found: Found }) {
  const names = [...new Set(found.funnels.flatMap((f) => f.map((s) => s.stage)))];
  const of = (side: 0 | 1, name: string) => found.funnels[side].find((s) => s.stage === name)?.documents_removed ?? 0;
  return <Pairs caption="Documents removed by stage" head="Removed by" rows={names.map((n) => [n, of(0, n), of(1, n)])} last={["Difference"]} told={(a, b) => [sign(b - a)]} />;
}

/** A signal in both runs: A above the axis, B below it. */
function Signal({ found, params }: { found: Found; params: Params }) {
  const signal = found.signals.includes(params.signal) ? params.signal : found.signals[0];
  const asked = useAnswer<Histogram & { medians: [number | null, number | null] }>("compared", { signal });
  return (
    <Card title="Signals" note="documents that the measuring stage kept">
      <label class="inline">Signal <select value={signal} onChange={(e) => go("compare", { ...params, signal: e.currentTarget.value }, true)}>
        {found.signals.map((name) => <option key={name} value={name}>{words(name)}</option>)}
      </select></label>
      <Waiting asked={asked}>
        {(h) => <><Chart h={h} runs={["A", "B"]} /><p class="note">Median {number(h.medians[0])} in A, {number(h.medians[1])} in B.</p></>}
      </Waiting>
    </Card>
  );
}

function Mixes({ found }: { found: Found }) {
  const rows = found.mixes.map((side) => side.flatMap((m) => (m.notes.mix ?? []).map((r) => ({ ...r, name: side.length > 1 ? `${m.stage}: ${words(r.domain)}` : words(r.domain) }))));
  const names = [...new Set(rows.flatMap((side) => side.map((r) => r.name)))];
  const of = (side: 0 | 1, name: string) => rows[side].find((r) => r.name === name);
  return (
    <Table caption="Tokens drawn, by domain">
      <thead><tr><th scope="col">Domain</th>{["A", "B"].map((side) => <Fragment key={side}><th scope="col" class="n">{side} <small>epochs</small></th><th scope="col" class="n">Share in {side}</th></Fragment>)}</tr></thead>
      <tbody>{names.map((name) => (
        <tr key={name}><th scope="row">{name}</th>{([0, 1] as const).map((side) => {
          const r = of(side, name);
          const label = side ? "B" : "A";
          return <Fragment key={side}><td class="n" data-label={label}>{r ? <>{count(r.kept)} <small>{r.epochs.toFixed(2)}</small></> : "–"}</td><td class="n" data-label={`Share in ${label}`}>{r ? share(r.kept_share, 1) : "–"}</td></Fragment>;
        })}</tr>
      ))}</tbody>
    </Table>
  );
}

function Kept() {
  const asked = useAnswer<Record<string, [Value[], Value[]]>>("sides");
  return (
    <>{(["language", "domain", "topic"]).map((name) => (
      <Card key={name} title={`Kept, by ${name}`} note="in documents">
        <Waiting asked={asked}>{(found) => <Sides sides={found[name]} name={name} />}</Waiting>
      </Card>
    ))}</>
  );
}

function Sides({ sides, name }: { sides: [Value[], Value[]]; name: string }) {
  const total = sides.map((s) => s.reduce((sum, v) => sum + v.kept, 0));
  const names = [...new Set(sides.flatMap((s) => s.filter((v) => v.kept).map((v) => v.value)))].slice(0, 20);
  const kept = (side: 0 | 1, value: string) => sides[side].find((v) => v.value === value)?.kept ?? 0;
  return <Pairs caption={`Kept, by ${name}`} head={words(name)} rows={names.map((v) => [label(name, v), kept(0, v), kept(1, v)])} last={["Share in A", "Share in B"]} told={(a, b) => [share(a, total[0]), share(b, total[1])]} />;
}
