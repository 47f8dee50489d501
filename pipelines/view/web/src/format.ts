// Numbers, dates and names for people.
const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n: number): string => whole.format(n);
export const compact = (n: number): string => (Math.abs(n) < 10000 ? whole.format(n) : short.format(n));
/** An estimated number. */
export const about = (n: number): string => (n ? `≈ ${compact(n)}` : "0");
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

export function share(part: number, all: number): string {
  if (!all) return "–";
  const percent = (100 * part) / all;
  if (percent > 0 && percent < 0.1) return "<0.1 %";
  if (percent < 100 && percent > 99.9) return ">99.9 %";
  return `${percent.toFixed(percent === 0 || percent === 100 ? 0 : 1)} %`;
}

/** Six digits at most, as the command line has them. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return whole.format(value);
  const digits = Number(value.toPrecision(4));
  return Math.abs(digits) >= 1e6 || Math.abs(digits) < 1e-4 ? digits.toExponential(2) : digits.toLocaleString("en", { maximumFractionDigits: 6 });
}

/** A value that a rule compared: stage dedup-urls compares dates, others texts. */
export function value(reason: string | null | undefined, found: number | null | undefined, text?: string | null): string {
  if (found === null || found === undefined) return text ? exact(text) : "–";
  return reason?.startsWith("url.") ? new Date(found * 1000).toISOString().slice(0, 10) : number(found);
}

export const day = (date: string | null): string => (date ? date.slice(0, 10) : "–");
export const named = (name: string): string => (name === "" ? "not known" : name);
export const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
export const words = (name: string): string => name.replaceAll("_", " ");

/** A value of a dimension: names of classes in words, everything else letter by letter. */
export const label = (dimension: string, name: string): string =>
  ["domain", "topic", "format"].includes(dimension) ? words(named(name)) : exact(named(name));

/** An address or id, with what can't be seen, or turns others around, written out; cut where it is endless. */
export const exact = (text: string): string =>
  (text.length > 500 ? `${text.slice(0, 500)}…` : text).replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const languages = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });

/** The English name of a language code, where the browser knows it. */
export function languageName(code: string): string {
  try { return code === "" || code === "und" ? "" : languages.of(code) ?? ""; } catch { return ""; }
}
