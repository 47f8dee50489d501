// One document: text with cuts, decisions, copies, page.
import { useEffect, useRef, useState } from "preact/hooks";
import { count, day, exact, named, number, plural, value, words } from "./format";
import { type Doc, type Params, type Run, link, useAnswer } from "./state";
import { Rows } from "./tables";
import { Card, Copy, DocLink, Fate, Figure, Name, Table, Waiting } from "./ui";

interface Rule { rule: string; value: number | null; min?: number; max?: number }
interface Decision {
  stage: string; decision: string; reason?: string; value?: number; value_text?: string; threshold?: number; kept_id?: string; cluster_size?: number;
  rules?: Rule[]; cut?: { reason: string; text: string }[]; mended?: string; detail?: string; rights?: string[]; [fact: string]: unknown;
}
interface Page extends Doc {
  id: string; source: { file: string; offset: number }; decisions: Decision[];
  own: Record<string, string>; segments: [string, "kept" | "cut" | "added", string, string][]; cut_short: boolean;
  cluster: { kept: Doc[]; removed: Doc[]; all: number } | null;
}
const FACTS = ["language", "language_score", "quality", "domain", "topic", "format", "path", "overruled", "tokens", "repeats"];

export function DocumentPage({ run, params }: { run: Run; params: Params }) {
  const asked = useAnswer<Page>("document", { row: params.row ?? "" });
  if (!asked.data) return <><h1>Document</h1><Waiting asked={asked}>{() => null}</Waiting></>;
  return (
    <Waiting asked={asked}>
      {(d) => (
        <article class="document">
          <header>
            <h1><bdi>{d.title || exact(d.url || d.id)}</bdi></h1>
            <p class="address"><span class="url"><bdi>{exact(d.url || "no URL")}</bdi></span> {d.url && <Copy text={d.url} label="Copy URL" />}</p>
            <Verdict d={d} run={run} />
          </header>
          <dl class="figures small">
            <Figure label="Characters">{count(d.characters)}</Figure>
            {d.tokens !== null && <Figure label="Tokens">{count(d.tokens)}</Figure>}
            <Figure label="Language">{named(d.language)}</Figure>
            {d.topic && <Figure label="Topic">{words(d.topic)}</Figure>}
            {d.format && <Figure label="Format">{words(d.format)}</Figure>}
            <Figure label="Date">{day(d.date)}</Figure>
            <Figure label="Record"><span class="mono"><bdi>{exact(d.source.file)}@{d.source.offset}</bdi></span></Figure>
            <Figure label="Id"><span class="mono"><bdi>{exact(d.id)}</bdi></span></Figure>
          </dl>
          {Object.keys(d.own).length > 0 && (
            <Card title="Own columns" note="as the input table has them"><dl class="own">
              {Object.entries(d.own).map(([name, text]) => <div key={name}><dt><bdi>{exact(name)}</bdi></dt><dd><bdi>{text}</bdi></dd></div>)}
            </dl></Card>
          )}
          <div class="reading">
            <Text d={d} />
            <Decisions d={d} />
          </div>
          {d.cluster && <Cluster d={d} cluster={d.cluster} params={params} />}
          {d.decisions.some((x) => x.decision === "kept" && x.stage === run.stages[run.stages.length - 1]) && <Spans row={d.row} />}
          <Extraction d={d} run={run} />
        </article>
      )}
    </Waiting>
  );
}

function Verdict({ d, run }: { d: Page; run: Run }) {
  const last = d.decisions[d.decisions.length - 1];
  if (d.reason === null) return <p class="verdict kept"><b>Kept</b> by every stage{last?.repeats !== undefined && Number(last.repeats) > 1 ? `, and drawn ${String(last.repeats)} times` : ""}.</p>;
  return (
    <p class="verdict removed">
      <b>Removed by {d.stage}</b>: {last?.rules?.some((r) => r.rule === d.reason) ? <a href={link("signals", { reason: d.reason })}><code>{d.reason}</code></a> : <code>{d.reason}</code>}
      {(last?.value ?? last?.value_text) !== undefined && <> with <b>{value(d.reason, last?.value, last?.value_text)}</b></>}
      {last?.threshold !== undefined && <>, where the threshold is <b>{value(d.reason, last.threshold)}</b></>}.
      {last?.detail && <> {String(last.detail)}</>} {run.meanings[d.reason]}
    </p>
  );
}

function Text({ d }: { d: Page }) {
  const [cuts, setCuts] = useState(true);
  const has = d.segments.some(([, kind]) => kind !== "kept");
  const shown = cuts ? d.segments : d.segments.filter(([, kind]) => kind !== "cut");
  return (
    <Card title="Text" note={has ? "struck: cut by a stage; underlined: put in its place" : undefined} class="text">
      {has && <label class="check"><input type="checkbox" checked={cuts} onChange={(e) => setCuts(e.currentTarget.checked)} /> show what was cut</label>}
      {d.segments.length === 0 && <p class="empty">No text was extracted.</p>}
      <div class="prose" lang={d.language || undefined} dir="auto">
        {shown.map(([text, kind, stage, reason], i) =>
          kind === "kept" ? <span key={i}>{text}</span>
            : kind === "cut" ? <del key={i} title={`${stage}: ${reason}`}>{text.replace(/\n+$/, "")}<sup>{reason}</sup>{/\n+$/.exec(text)?.[0]}</del>
              : <ins key={i} title={`${stage}: ${reason}`}>{text}</ins>)}
      </div>
      {d.cut_short && <p class="note">Only the beginning is shown.</p>}
    </Card>
  );
}

function Decisions({ d }: { d: Page }) {
  return (
    <Card title="Decisions" class="decisions">
      <ol>
        {d.decisions.map((x, i) => {
          const before = d.decisions[i - 1] ?? {};
          const facts = FACTS.filter((f) => x[f] !== undefined && x[f] !== null && x[f] !== before[f as keyof typeof before]);
          const cuts = x.cut?.length ?? 0;
          const rules = x.rules ?? [];
          return (
            <li key={x.stage} class={x.decision}>
              <p class="head"><b>{x.stage}</b> <span class={`fate ${x.decision}`}>{x.decision === "removed" ? x.reason : x.decision}</span></p>
              {x.value !== undefined && x.threshold !== undefined && <p>value <b>{value(x.reason, x.value)}</b>, threshold {value(x.reason, x.threshold)}</p>}
              {x.mended && <p>record repaired: {x.mended}</p>}
              {x.detail && <p>{x.detail}</p>}
              {facts.length > 0 && <p class="note">{facts.map((f) => `${words(f)} ${typeof x[f] === "number" ? number(x[f] as number) : words(String(x[f]))}`).join(" · ")}</p>}
              {x.rights?.map((line) => <p class="note" key={line}>{line}</p>)}
              {cuts > 0 && <p class="note">{plural(cuts, "passage")} cut</p>}
              {rules.length > 0 && <Rules rules={rules} reason={x.reason} open={x.decision === "removed"} />}
            </li>
          );
        })}
      </ol>
    </Card>
  );
}

/** How far a value is from failing, as a share of the limit: 1 is at the limit. */
function closeness(r: Rule): number {
  if (r.value === null) return -1;
  const near = (limit: number | undefined, over: boolean) => {
    if (limit === undefined) return 0;
    const v = r.value as number;
    if (over) return limit > 0 ? v / limit : v > limit ? 2 : 0;
    return v > 0 ? limit / v : 2;
  };
  return Math.max(near(r.max, true), near(r.min, false));
}

function Rules({ rules, reason, open }: { rules: Rule[]; reason?: string; open: boolean }) {
  const fails = (r: Rule) => r.value !== null && ((r.min !== undefined && r.value < r.min) || (r.max !== undefined && r.value > r.max));
  const ranked = [...rules].sort((a, b) => Number(b.rule === reason) - Number(a.rule === reason) || closeness(b) - closeness(a));
  return (
    <details open={open && rules.length < 60}>
      <summary>{plural(rules.length, "limit")}, the closest first</summary>
      <Table caption="Limits and values" class="rules">
        <thead><tr><th scope="col">Rule</th><th scope="col" class="n">Value</th><th scope="col" class="n">Limit</th></tr></thead>
        <tbody>
          {ranked.map((r, i) => (
            <tr key={i} class={fails(r) ? "fails" : undefined}>
              <th scope="row"><Name name={r.rule} /></th>
              <td class="n">{number(r.value)}</td>
              <td class="n">{r.min !== undefined && `≥ ${number(r.min)}`}{r.max !== undefined && `${r.min !== undefined ? ", " : ""}≤ ${number(r.max)}`}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </details>
  );
}

function Cluster({ d, cluster, params }: { d: Page; cluster: NonNullable<Page["cluster"]>; params: Params }) {
  const [other, setOther] = useState<number | null>(null);
  const members = [...cluster.kept.map((m) => ({ m, kept: true })), ...cluster.removed.map((m) => ({ m, kept: false }))];
  return (
    <Card title="Copies" note={`${plural(cluster.all, "document")} removed as copies of ${cluster.kept.length ? "the one kept" : "one that this run doesn’t have"}`}>
      <ul class="members">
        {members.map(({ m, kept }) => (
          <li key={m.row} aria-current={m.row === d.row ? "true" : undefined}>
            {kept ? <span class="fate kept">kept</span> : <Fate doc={m} />}
            <DocLink doc={m} params={params} />
            <span class="n">{count(m.characters)} characters</span>
            {m.row === d.row ? <span class="note">this one</span>
              : <button type="button" aria-expanded={other === m.row} onClick={() => setOther(other === m.row ? null : m.row)}>Compare</button>}
            {other === m.row && <Difference row={d.row} other={other} />}
          </li>
        ))}
      </ul>
      {cluster.removed.length < cluster.all && <p class="note">{count(cluster.all - cluster.removed.length)} more are not shown.</p>}
    </Card>
  );
}

/** A line's sign and text; of lines that are alike, also its parts with whether they differ. */
type Line = [string, string, [string, boolean][]?];

export function Difference({ row, other }: { row: number; other: number }) {
  const asked = useAnswer<{ lines: Line[]; cut_short: boolean }>("difference", { row: String(row), with: String(other) });
  return (
    <Waiting asked={asked}>
      {(found) => {
        if (found.lines.every(([sign]) => sign === " ")) return <p class="empty">The texts are the same.</p>;
        return (
          <div class="diff" role="region" aria-label="Differences" tabIndex={0}>
            <p class="note">− only in this document, + only in the other</p>
            {folded(found.lines).map((part, i) => typeof part === "number"
              ? <p key={i} class="fold">{plural(part, "equal line")}</p>
              : <p key={i} class={part[0] === "-" ? "minus" : part[0] === "+" ? "plus" : "same"} dir="auto"><span class="sign">{part[0] === "-" ? "−" : part[0]}</span>{part[2] ? part[2].map(([text, differs], j) => (differs ? <mark key={j}>{text}</mark> : text)) : part[1] || " "}</p>)}
            {found.cut_short && <p class="note">Only the beginning is compared.</p>}
          </div>
        );
      }}
    </Waiting>
  );
}

/** Equal lines far from any change as their number. */
function folded(lines: Line[]): (Line | number)[] {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - 2), i + 3).some(([sign]) => sign !== " "));
  const found: (Line | number)[] = [];
  lines.forEach((line, i) => {
    if (near[i]) found.push(line);
    else if (typeof found[found.length - 1] === "number") found[found.length - 1] = (found[found.length - 1] as number) + 1;
    else found.push(1);
  });
  return found;
}

function Spans({ row }: { row: number }) {
  const asked = useAnswer<Record<string, unknown>[]>("spans", { row: String(row) });
  return (
    <Waiting asked={asked}>
      {(spans) => spans.length === 0 ? null : (
        <Card title="Tokens" note="where this document lies in the training sequences">
          <Rows caption="Token spans" rows={spans} most={50} />
        </Card>
      )}
    </Waiting>
  );
}

interface Block { text: string; path: string; score: number; threshold: number; kept: boolean; reason: string; code: boolean; values: [string, number][] }

function Extraction({ d, run }: { d: Page; run: Run }) {
  const [open, setOpen] = useState(false);
  return (
    <Card title="Page" note="what the extractor saw, block by block">
      {run.has_inputs
        ? open ? <Blocks row={d.row} /> : <button type="button" onClick={() => setOpen(true)}>Show the page and its blocks</button>
        : <p class="note">Start with <code>--input PATH</code>, the run’s input, to see the page next to its blocks.</p>}
    </Card>
  );
}

function Blocks({ row }: { row: number }) {
  const asked = useAnswer<{ notes: string[]; blocks: Block[] }>("blocks", { row: String(row) });
  const list = useRef<HTMLOListElement>(null);
  const [close, setClose] = useState(-1);
  useEffect(() => {
    if (close >= 0) (list.current?.querySelector(`[data-block="${close}"]`) as HTMLElement | null)?.focus();
  }, [close]);
  return (
    <Waiting asked={asked}>
      {({ notes, blocks }) => {
        const closest = blocks.map((b, i) => ({ i, far: Math.abs(b.score - b.threshold) })).sort((a, b) => a.far - b.far).slice(0, 20).map((b) => b.i).sort((a, b) => a - b);
        const next = () => setClose(closest.find((i) => i > close) ?? closest[0] ?? -1);
        return (
          <>
            <p class="note">{notes.join("; ")}. <button type="button" onClick={next}>Next close call</button></p>
            <div class="page">
              <iframe title="The page, without scripts and network" sandbox="" src={`page?row=${row}`} />
              <ol class="blocks" ref={list}>
                {runs(blocks, close).map((part) => "blocks" in part
                  ? <li key={part.first}><details><summary>{plural(part.blocks.length, "dropped block")}</summary>{part.blocks.map((b, i) => <BlockText key={i} b={b} number={part.first + i} />)}</details></li>
                  : <li key={part.number}><BlockText b={part.b} number={part.number} /></li>)}
              </ol>
            </div>
          </>
        );
      }}
    </Waiting>
  );
}

type Part = { b: Block; number: number } | { first: number; blocks: Block[] };

/** Blocks one by one, but three and more dropped ones in a row folded; the one looked at never. */
function runs(blocks: Block[], shown: number): Part[] {
  const found: Part[] = [];
  for (let i = 0; i < blocks.length;) {
    let end = i;
    while (end < blocks.length && !blocks[end].kept && end !== shown) end++;
    if (end - i > 2) { found.push({ first: i, blocks: blocks.slice(i, end) }); i = end; }
    else { found.push({ b: blocks[i], number: i }); i++; }
  }
  return found;
}

function BlockText({ b, number: at }: { b: Block; number: number }) {
  return (
    <details class={`block ${b.kept ? "kept" : "removed"}`} data-block={at} tabIndex={-1}>
      <summary><span class="score">{b.score.toFixed(2)}</span><span class={b.code ? "mono" : undefined} dir="auto">{b.text}</span></summary>
      <p class="note">{b.reason}. <code>{b.path}</code></p>
      <dl>{b.values.map(([name, v]) => <div key={name}><dt>{name}</dt><dd>{number(v)}</dd></div>)}</dl>
    </details>
  );
}

