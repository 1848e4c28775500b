// Commands that read an address of the API.

/** The variable of the environment that has the key. */
export const variable = "LECTERN_API_KEY";

/** shell writes a text so that a shell takes it as one word, whatever it holds. */
export const shell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** keyHeader writes the header with the key, or with the variable that has it. */
export const keyHeader = (key: string | undefined): string => (key === undefined ? `"X-Api-Key: $${variable}"` : shell(`X-Api-Key: ${key}`));

/** curl reads an address. */
export const curl = (url: string): string => `curl -H ${keyHeader(undefined)} ${shell(url)}`;

/** lectern reads an address with the command line. */
export const lectern = (url: URL): string => `lectern api ${shell(url.pathname + url.search)}`;

/** csv exports the whole list of entries that an address is a page of. The flag --version of lectern prints its own version. It returns undefined for other addresses. */
export function csv({ pathname, searchParams }: URL): string | undefined {
  if (!/^\/projects\/[^/]+\/entries$/.test(pathname)) return undefined;
  const flags = [...searchParams].filter(([name]) => name !== "limit" && name !== "cursor").map(([name, value]) => ` --${name === "version" ? "version-number" : name.replaceAll("_", "-")}=${shell(value)}`);
  return `lectern export entries --flatten -o csv${flags.join("")} > entries.csv`;
}
