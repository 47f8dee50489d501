// The page: views, filters, and the run that they are of.
import { type JSX, render } from "preact";
import { useEffect } from "preact/hooks";
import { Compare } from "./compare";
import { DocumentPage } from "./document";
import { Documents } from "./documents";
import { label } from "./format";
import { Funnel } from "./funnel";
import { Signals } from "./signals";
import { type Params, type Run, filtersOf, link, useAnswer, useRoute } from "./state";
import "./style.css";
import { Duplicates, Errors, Hosts, Lines, Mix } from "./tables";

/** Name in the address, title, what the view says, and the view. */
const VIEWS: [string, string, string, (props: { run: Run; params: Params }) => JSX.Element | null][] = [
  ["funnel", "Funnel", "What each stage removed, and why. Click a stage, a rule or a value to see only its documents, in every view.", Funnel],
  ["signals", "Signals", "Drag the line to see which documents another threshold would gain or lose.", Signals],
  ["documents", "Documents", "Every document of the run, kept or removed. Open one for its text and every decision on it.", Documents],
  ["duplicates", "Duplicates", "Documents removed as copies of another. Open a cluster to compare its members.", Duplicates],
  ["hosts", "Hosts", "What each host contributes, and why its documents are removed. Open one for its documents.", Hosts],
  ["lines", "Lines", "Lines that many documents share: which were cut, and how much good text is among them.", Lines],
  ["mix", "Mix", "Tokens that each domain has, how often they were written, and what the recipe wanted.", Mix],
  ["errors", "Errors", "Records that did not become documents, and those that were repaired.", Errors],
  ["compare", "Compare", "Documents that end differently in two runs, and which settings differ.", Compare],
];
/** Views that filters don't change. */
const WHOLE = ["lines", "mix", "errors", "compare", "document"];

function App() {
  const { view, params } = useRoute();
  const asked = useAnswer<Run>("run");
  const run = asked.data;
  const [, known, lead] = VIEWS.find(([name]) => name === view) ?? [];
  const title = known ?? (view === "document" ? "Document" : "Not found");
  useEffect(() => { if (run) document.title = `${title} · ${run.run} · Curation`; }, [title, run]);
  useEffect(() => { scrollTo(0, 0); }, [view, params.row]);
  useEffect(() => {  // on a phone the views are a row to scroll
    document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [view, run]);
  if (asked.error) return <main><p class="problem" role="alert">{asked.error}</p></main>;
  if (!run) return <main><p class="loading" role="status">Opening the run…</p></main>;
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to the content</a>
      <div class="shell">
        <header class="side">
          <div class="run">
            <p class="brand"><svg viewBox="0 0 32 32" aria-hidden="true"><path d="M3 5h26L19 17v8l-6 4V17z" /></svg> Curation</p>
            <p class="name" title={run.root}>{run.run}</p>
            <p class="note">recipe {run.recipe.name}</p>
          </div>
          <nav aria-label="Views"><ul>
            {VIEWS.filter(([name]) => name !== "compare" || run.compared).map(([name, label]) => (
              <li key={name}><a href={link(name, filtersOf(params))} aria-current={view === name || (view === "document" && name === "documents") ? "page" : undefined}>{label}</a></li>
            ))}
          </ul></nav>
        </header>
        <main id="content" tabIndex={-1}>
          {view !== "document" && <h1>{title}</h1>}
          {lead && <p class="lead">{lead}</p>}
          {run.measured && run.unfinished.length === 0 && <p class="notice">This run only measured: no threshold has removed anything yet. Under Signals, “removed” is what the thresholds would remove; move them there and export a policy.</p>}
          {run.unfinished.length > 0 && <p class="problem">This run is not finished: {run.unfinished.join(", ")} {run.unfinished.length === 1 ? "has" : "have"} no result yet. What reached {run.stages[run.stages.length - 1]} is shown as kept.</p>}
          {run.stale.length > 0 && <p class="problem">Changed since, and not shown: {run.stale.join(", ")}</p>}
          {!WHOLE.includes(view) && <Filters view={view} params={params} />}
          <View view={view} run={run} params={params} />
        </main>
      </div>
    </>
  );
}

function Filters({ view, params }: { view: string; params: Params }) {
  const held = Object.entries(filtersOf(params));
  if (held.length === 0) return null;
  return (
    <ul class="filters" aria-label="Filters">
      {held.map(([name, value]) => {
        const { [name]: _, ...rest } = params;
        delete rest.first;
        return <li key={name}><a href={link(view, rest)} aria-label={`Remove the filter ${name} ${label(name, value)}`}>{name} <b><bdi>{label(name, value)}</bdi></b> <span aria-hidden="true">×</span></a></li>;
      })}
      <li><a class="all" href={link(view, Object.fromEntries(Object.entries(params).filter(([k]) => !(k in filtersOf(params)))))}>Clear all</a></li>
    </ul>
  );
}

function View({ view, run, params }: { view: string; run: Run; params: Params }) {
  if (view === "document") return <DocumentPage key={params.row} run={run} params={params} />;
  const Shown = VIEWS.find(([name]) => name === view)?.[3];
  return Shown ? <Shown run={run} params={params} /> : <p class="empty">There is no view of this name. <a href="#/funnel">To the funnel</a></p>;
}

const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
