// Histograms of signals with thresholds that can be dragged.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { about, compact, count, number, words } from "./format";
import { type Doc, type Params, type Run, type Values, ask, filtersOf, go, link, useAnswer } from "./state";
import { Card, Copy, DocLink, Fate, Figure, Name, Waiting } from "./ui";

interface Limit { limit: number; reason: string; key: string; signal: string; side: "min" | "max"; threshold: number; language: string | null; removed: number }
/** The thresholds of one end of a rule: the general one, and those of languages with their own. */
interface Group { key: string; reason: string; side: string; limits: Limit[]; removed: number }
interface Limits { stage: string; documents: number; limits: Limit[]; others: string[] }
export interface Histogram {
  signal: string; edges: number[]; scale: "linear" | "log"; counts: Record<"kept" | "removed" | "other", number[]>;
  documents: number; unmeasured: number; range: [number, number] | null;
}
interface Change {
  threshold: number; gained: number; lost: number; gained_weight: number; lost_weight: number;
  gained_tokens: number | null; lost_tokens: number | null; alone: number; setting: string;
  languages: { language: string; gained: number; lost: number }[];
}

/** Thresholds that were moved since the page was opened: key and setting. */
const moved = new Map<string, string>();

export function Signals({ run, params }: { run: Run; params: Params }) {
  if (!run.has_signals) return <p class="empty">No stage of this run measures documents by signals.</p>;
  const filters = filtersOf(params);
  const asked = useAnswer<Limits>("limits", filters);
  const { language: _, ...others } = filters;
  const values = useAnswer<Values>(run.dimensions.includes("language") ? "values" : null, { ...others, dimension: "language", most: "500" });
  const languages = values.data?.language.values ?? [];
  return (
    <Waiting asked={asked}>
      {(found) => {
        const groups = grouped(found.limits);
        const plain = params.signal;
        const chosen = plain ? undefined : found.limits.find((l) => (params.limit ? String(l.limit) === params.limit : l.reason === params.reason)) ?? groups[0]?.limits[0];
        const group = groups.find((g) => chosen && g.limits.includes(chosen));
        return (
          <div class="split">
            <Chooser found={found} groups={groups} params={params} chosen={group} plain={plain} />
            <div>
              {languages.length > 1 && (
                <p class="language"><label class="inline">Language <select value={params.language ?? "all"} onChange={(e) => {
                  const { language: _, ...rest } = params;
                  go("signals", e.currentTarget.value === "all" ? rest : { ...rest, language: e.currentTarget.value });
                }}>
                  <option value="all">all</option>
                  {languages.filter((l) => l.value).map((l) => <option key={l.value} value={l.value}>{l.value} · {count(l.documents)}</option>)}
                </select></label></p>
              )}
              {chosen && group && <Threshold key={chosen.limit} limit={chosen} group={group} run={run} params={params} />}
              {plain && <Plain signal={plain} run={run} params={params} />}
            </div>
          </div>
        );
      }}
    </Waiting>
  );
}

function grouped(limits: Limit[]): Group[] {
  const found = new Map<string, Group>();
  for (const l of limits) {
    const key = `${l.reason} ${l.side}`;
    const held = found.get(key) ?? { key, reason: l.reason, side: l.side, limits: [], removed: 0 };
    held.limits.push(l);
    held.removed += l.removed;
    found.set(key, held);
  }
  return [...found.values()].sort((a, b) => b.removed - a.removed);
}

function Chooser({ found, groups, params, chosen, plain }: {
  found: Limits; groups: Group[]; params: Params; chosen?: Group; plain?: string;
}) {
  const [wanted, setWanted] = useState("");
  const filters = filtersOf(params);
  const fits = (name: string) => name.includes(wanted.trim().toLowerCase().replaceAll(" ", "_"));
  const shown = groups.filter((g) => fits(g.key));
  const most = Math.max(...groups.map((g) => g.removed), 1);
  return (
    <>
      <label class="phone">Rule
        <select value={plain ? `signal ${plain}` : String(chosen?.limits[0].limit)} onChange={(e) => {
          const value = e.currentTarget.value;
          go("signals", { ...filters, ...(value.startsWith("signal ") ? { signal: value.slice(7) } : { limit: value }) });
        }}>
          <optgroup label="Rules">{groups.map((g) => <option key={g.key} value={String(g.limits[0].limit)}>{g.reason} {g.side} · {count(g.removed)}</option>)}</optgroup>
          <optgroup label="Signals without a rule">{found.others.map((s) => <option key={s} value={`signal ${s}`}>{s}</option>)}</optgroup>
        </select>
      </label>
      <nav class="chooser desk" aria-label="Rules and signals">
        <input type="search" placeholder="Find a rule or signal" aria-label="Find a rule or signal" value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} />
        <div class="list" onKeyDown={moveInList}>
          <h2>Rules, by what they remove</h2>
          <ul>
            {shown.map((g) => (
              <li key={g.key}>
                <a href={link("signals", { ...filters, limit: String(g.limits[0].limit) })} aria-current={chosen === g ? "true" : undefined} tabIndex={chosen === g || (!shown.includes(chosen as Group) && g === shown[0]) ? 0 : -1}>
                  <span class="name"><Name name={g.reason} /></span>
                  <span class="n"><small>{g.side}</small>{count(g.removed)}</span>
                  {g.removed > 0 && <span class="bar" aria-hidden="true"><i class="removed" style={{ inlineSize: `${(100 * g.removed) / most}%` }} /></span>}
                </a>
              </li>
            ))}
          </ul>
          {found.others.some(fits) && <h2>Signals without a rule</h2>}
          <ul>
            {found.others.filter(fits).map((s) => (
              <li key={s}><a href={link("signals", { ...filters, signal: s })} aria-current={plain === s ? "true" : undefined} tabIndex={plain === s ? 0 : -1}><span class="name">{words(s)}</span></a></li>
            ))}
          </ul>
        </div>
      </nav>
    </>
  );
}

/** One item of the list is in the order of the tab key; the arrow keys lead to the others. */
function moveInList(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const items = [...event.currentTarget.querySelectorAll("a")];
  const at = items.indexOf(document.activeElement as HTMLAnchorElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  items[Math.min(Math.max(to, 0), items.length - 1)].focus();
}

function Plain({ signal, run, params }: { signal: string; run: Run; params: Params }) {
  const asked = useAnswer<Histogram>("signal", { ...filtersOf(params), signal });
  return (
    <Card title={words(signal)} note={<>{run.meanings[signal]} No rule reads this signal; all documents that were measured are shown.</>}>
      <Waiting asked={asked}>{(h) => <Chart h={h} />}</Waiting>
    </Card>
  );
}

function Threshold({ limit, group, run, params }: { limit: Limit; group: Group; run: Run; params: Params }) {
  const filters = filtersOf(params);
  const given = Number(params.threshold);
  const [at, setAt] = useState(params.threshold && Number.isFinite(given) ? given : limit.threshold);
  const [change, problem] = useLatest<Change>("change", { ...filters, limit: String(limit.limit), threshold: String(at) });
  const asked = useAnswer<Histogram>("signal", { ...filters, limit: String(limit.limit) });
  const settled = useSettled(at);
  useEffect(() => {
    const wanted: Params = { ...filters, limit: String(limit.limit) };
    if (settled !== limit.threshold) wanted.threshold = String(settled);
    if ((params.limit ?? wanted.limit) === wanted.limit && params.threshold !== wanted.threshold) go("signals", wanted, true);
  }, [settled]);
  const changed = at !== limit.threshold;
  if (!changed) moved.delete(limit.key);
  else if (change?.threshold === at) moved.set(limit.key, change.setting);
  return (
    <>
      <Card title={<>{limit.reason}{limit.language && <em> {limit.language}</em>}</>}
        note={<>{run.meanings[limit.reason] ?? <>Compares <code>{limit.signal}</code>.</>} Documents {limit.side === "min" ? "below" : "above"} the threshold are removed.</>}>
        <Waiting asked={asked}>{(h) => <Chart h={h} limit={limit} at={at} setAt={setAt} />}</Waiting>
        <div class="controls">
          {group.limits.length > 1 && (
            <label>For <select value={String(limit.limit)} onChange={(e) => go("signals", { ...filters, limit: e.currentTarget.value })}>
              {group.limits.map((l) => <option key={l.limit} value={String(l.limit)}>{l.language ?? "all other languages"}, {number(l.threshold)} · {count(l.removed)} removed</option>)}
            </select></label>
          )}
          <label>Threshold <input type="number" step="any" value={at} onInput={(e) => {
            const value = e.currentTarget.valueAsNumber;
            if (Number.isFinite(value)) setAt(value);
          }} /></label>
          <button type="button" disabled={!changed} onClick={() => setAt(limit.threshold)}>Back to the run’s {number(limit.threshold)}</button>
        </div>
        {problem && <p class="problem" role="alert">{problem}</p>}
        {change && (
          <>
            <dl class="figures" aria-live="polite">
              <Figure label="Documents gained" kind="kept">{change.gained ? "+" : ""}{count(change.gained)}</Figure>
              <Figure label="Documents lost" kind="removed">{change.lost ? "−" : ""}{count(change.lost)}</Figure>
              {(["gained", "lost"] as const).map((way) => {
                const tokens = change[`${way}_tokens`];
                return <Figure key={way} label={`${tokens === null ? "Characters" : "Tokens"} ${way}`}>{tokens === null ? compact(change[`${way}_weight`]) : about(tokens)}</Figure>;
              })}
              <Figure label="Pass every other rule">{count(change.alone)}</Figure>
            </dl>
            {change.languages.length > 0 && (
              <p class="chips" aria-label="By language">
                {change.languages.map((l) => (
                  <span class="chip" key={l.language}>{l.language || "not known"}{l.gained ? <b class="kept"> +{count(l.gained)}</b> : ""}{l.lost ? <b class="removed"> −{count(l.lost)}</b> : ""}</span>
                ))}
              </p>
            )}
            <p class="command"><code>--set {change.setting}</code>
              <Copy text={`--set ${change.setting}`} /></p>
          </>
        )}
      </Card>
      {run.measured && moved.size > 0 && <Export run={run} settings={[...moved.values()]} />}
      <Nearest limit={limit} at={settled} params={params} />
    </>
  );
}

/** The policy with all thresholds that were moved, as a file and as a command. */
function Export({ run, settings }: { run: Run; settings: string[] }) {
  const [state, setState] = useState("");
  const command = `curate policy --run ${run.run} ${settings.map((s) => `--set ${s}`).join(" ")}`;
  const save = async () => {
    setState("Counting …");
    try {
      const { policy } = await ask<{ policy: string }>("policy", { set: settings.join("\n") });
      const file = document.createElement("a");
      file.href = URL.createObjectURL(new Blob([policy], { type: "application/yaml" }));
      file.download = "policy.yaml";
      file.click();
      URL.revokeObjectURL(file.href);
      setState("Saved as policy.yaml");
    } catch (error) { setState((error as Error).message); }
  };
  return (
    <Card title="Policy" note={<>The thresholds moved here, with the share of the documents that each rule then removes, for <code>curate apply</code>. Add who approves it.</>}>
      <div class="controls"><button type="button" class="export" onClick={save}>Export the policy</button> <span role="status">{state}</span></div>
      <p class="command"><code>{command}</code><Copy text={command} /></p>
    </Card>
  );
}

/** Of answers to a value that changes quickly, only the latest; one request at a time. */
function useLatest<T>(name: string, params: Params): [T | undefined, string | undefined] {
  const [answer, setAnswer] = useState<T>();
  const [problem, setProblem] = useState<string>();
  const wanted = useRef(params);
  const busy = useRef(false);
  wanted.current = params;
  useEffect(() => {
    if (busy.current) return;
    busy.current = true;
    (async () => {
      let asked: Params | undefined;
      while (asked !== wanted.current) {
        asked = wanted.current;
        try { setAnswer(await ask<T>(name, asked)); setProblem(undefined); }
        catch (error) { setProblem((error as Error).message); break; }
      }
      busy.current = false;
    })();
  }, [JSON.stringify(params)]);
  return [answer, problem];
}

function useSettled(value: number): number {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 250);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

const H = 348, LEFT = 52, RIGHT = 12, TOP = 52, MIDDLE = 202, BOTTOM = 294;

/** A histogram: kept above the axis, removed below; or two runs, by name, on one scale. */
export function Chart({ h, limit, at = 0, setAt, runs }: { h: Histogram; limit?: Limit; at?: number; setAt?: (value: number) => void; runs?: [string, string] }) {
  const svg = useRef<SVGSVGElement>(null);
  const W = useWidth(svg, 900);
  if (!h.range) return <p class="empty">No document has this signal under these filters.</p>;
  const bins = h.edges.length - 1;
  const scaled = (v: number) => (h.scale === "log" ? Math.log1p(Math.max(v, 0)) : v);
  const unscaled = (v: number) => (h.scale === "log" ? Math.expm1(v) : v);
  const low = scaled(h.edges[0]), high = scaled(h.edges[bins]);
  const x = (v: number) => LEFT + ((W - LEFT - RIGHT) * (Math.min(Math.max(scaled(v), low), high) - low)) / (high - low);
  const value = (px: number) => unscaled(low + ((Math.min(Math.max(px, LEFT), W - RIGHT) - LEFT) * (high - low)) / (W - LEFT - RIGHT));
  const gone = h.counts.removed.map((n, i) => n + (limit ? h.counts.other[i] : 0));
  const ups = Math.max(...h.counts.kept, 1), downs = Math.max(...gone, 1);
  const up = runs ? Math.max(ups, downs) : ups, down = runs ? up : downs;
  const middle = runs ? (TOP + BOTTOM) / 2 : MIDDLE;
  const [above, below] = runs ?? ["kept", "removed"];
  const wide = (W - LEFT - RIGHT) / bins;
  const round = (v: number) => Number(v.toPrecision(3));
  const move = (event: PointerEvent) => {
    const box = svg.current!.getBoundingClientRect();
    setAt?.(round(value(((event.clientX - box.left) * W) / box.width)));
  };
  const key = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const px = x(at) + (steps[event.key] * (W - LEFT - RIGHT)) / 200;
    setAt?.(round(value(px)));
  };
  const parts = W < 500 ? 2 : 5;
  const ticks = Array.from({ length: parts + 1 }, (_, i) => i / parts).map((t) => unscaled(low + t * (high - low)));
  const tick = (v: number) => (Math.abs(v) >= 1000 ? compact(Math.round(v)) : String(Number(v.toPrecision(2))));
  return (
    <>
      <svg ref={svg} class={`chart ${setAt ? "draggable" : ""} ${runs ? "runs" : ""}`} viewBox={`0 0 ${W} ${H}`} role="group" aria-label={`Histogram of ${h.signal}`}
        onPointerDown={setAt && ((e) => { e.currentTarget.setPointerCapture(e.pointerId); move(e); })}
        onPointerMove={setAt && ((e) => { if (e.buttons) move(e); })}>
        {limit && setAt && <rect class="fails" y={TOP} height={BOTTOM - TOP} x={limit.side === "min" ? LEFT : x(at)} width={limit.side === "min" ? x(at) - LEFT : W - RIGHT - x(at)} />}
        <g aria-hidden="true">
          {h.counts.kept.map((n, i) => n > 0 && <rect key={i} class="kept" x={LEFT + i * wide + 0.5} width={wide - 1} y={middle - Math.max(1, (n / up) * (middle - TOP))} height={Math.max(1, (n / up) * (middle - TOP))}><title>{`${tick(h.edges[i])} to ${tick(h.edges[i + 1])}: ${count(n)} ${above}`}</title></rect>)}
          {gone.map((n, i) => {
            const tall = Math.max(1.5, (n / down) * (BOTTOM - middle - 4));
            const mine = n ? (tall * h.counts.removed[i]) / n : 0;
            return n > 0 && (
              <g key={i}>
                <rect class="removed" x={LEFT + i * wide + 0.5} width={wide - 1} y={middle + 2} height={mine}><title>{`${tick(h.edges[i])} to ${tick(h.edges[i + 1])}: ${count(h.counts.removed[i])} ${below}`}</title></rect>
                <rect class="other" x={LEFT + i * wide + 0.5} width={wide - 1} y={middle + 2 + mine} height={tall - mine}><title>{`${count(n - h.counts.removed[i])} removed by other rules`}</title></rect>
              </g>
            );
          })}
          <line class="axis" x1={LEFT} x2={W - RIGHT} y1={middle + 1} y2={middle + 1} />
          <text class="name" x={LEFT} y={14}>{runs ? `documents in ${above}, above; in ${below}, below` : "documents kept, above; removed, below"}</text>
          <text x={LEFT - 8} y={TOP + 8} text-anchor="end">{compact(up)}</text>
          <text x={LEFT - 8} y={middle + 4} text-anchor="end">0</text>
          <text x={LEFT - 8} y={BOTTOM} text-anchor="end">{compact(down)}</text>
          {ticks.map((v, i) => <text key={i} x={LEFT + (i * (W - LEFT - RIGHT)) / parts} y={BOTTOM + 24} text-anchor={i === parts ? "end" : i ? "middle" : "start"}>{tick(v)}</text>)}
          <text class="name" x={(LEFT + W - RIGHT) / 2} y={H - 6} text-anchor="middle">{words(h.signal)}{h.scale === "log" ? ", logarithmic" : ""}</text>
        </g>
        {limit && at !== limit.threshold && <g class="was"><line x1={x(limit.threshold)} x2={x(limit.threshold)} y1={TOP} y2={BOTTOM} /></g>}
        {limit && setAt && (
          <g class="handle" role="slider" tabindex={0} aria-label={`Threshold of ${limit.reason}`} aria-valuenow={at}
            aria-valuemin={Math.min(h.edges[0], at)} aria-valuemax={Math.max(h.edges[bins], at)} aria-valuetext={number(at)} onKeyDown={key}>
            <line x1={x(at)} x2={x(at)} y1={TOP - 4} y2={BOTTOM} />
            <rect class="grip" x={x(at) - 12} y={TOP - 24} width={24} height={22} rx={5} />
            <path class="arrows" d={`M${x(at) - 3},${TOP - 17} l-4,4 l4,4 M${x(at) + 3},${TOP - 17} l4,4 l-4,4`} />
          </g>
        )}
      </svg>
      <p class={`legend ${runs ? "runs" : ""}`}>
        <span><i class="kept" /> {above} {count(sum(h.counts.kept))}</span>
        <span><i class="removed" /> {limit ? "removed by this rule" : below} {count(sum(h.counts.removed))}</span>
        {limit && <span><i class="other" /> by others {count(sum(h.counts.other))}</span>}
        <span class="note">{!runs && "Kept and removed use separate scales."}{h.unmeasured > 0 && ` Not measured: ${count(h.unmeasured)}.`}</span>
      </p>
    </>
  );
}

/** The width at which an element is shown, so that texts in a picture have their own size. */
function useWidth(element: { current: Element | null }, first: number): number {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(260, Math.round(entry.contentRect.width))));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element.current]);
  return width;
}

const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);

function Nearest({ limit, at, params }: { limit: Limit; at: number; params: Params }) {
  const asked = useAnswer<{ below: Doc[]; above: Doc[] }>("nearest", { ...filtersOf(params), limit: String(limit.limit), threshold: String(at), most: "10" });
  const fails = limit.side === "min" ? "below" : "above";
  return (
    <Waiting asked={asked}>
      {(found) => (
        <div class="sides">
          {(["below", "above"] as const).map((side) => (
            <Card key={side} title={`Just ${side}`} note={side === fails ? "these would be removed" : "these would be kept"} class={side === fails ? "fails" : "passes"}>
              {found[side].length === 0 && <p class="empty">No document that this rule alone decides.</p>}
              <ol class="samples">
                {found[side].map((d) => (
                  <li key={d.row}>
                    <p class="where"><b class="n">{number(d.signal)}</b> <Fate doc={d} /> {d.language}</p>
                    <DocLink doc={d} params={params} />
                    <p class="snippet">{d.text}</p>
                  </li>
                ))}
              </ol>
            </Card>
          ))}
        </div>
      )}
    </Waiting>
  );
}
