// Tests and groups that are declared once for each row of a list.

const { exact, isObject, misuse, shown } = core;

/** What a name takes from a row: `%s` and the like its values in order, `%#` and `%$` its number, `$a.b` a member. */
const PLACES = /%[sdifjo#$%]|\$[A-Za-z_]\w*(?:\.\w+)*/g;

/** Returns the values of a row, which are the arguments of the function. */
const valuesOf = (row) => (Array.isArray(row) ? row : [row]);

const written = (value) => (typeof value === "string" ? value : shown(value));

/** Returns the member of a row at a path, or undefined. */
const memberAt = (row, path) => path.split(".").reduce((value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined), row);

function titleOf(title, row, index) {
  const values = valuesOf(row)[Symbol.iterator]();
  return title.replace(PLACES, (place) => {
    if (place === "%%") return "%";
    if (place === "%#") return String(index);
    if (place === "%$") return String(index + 1);
    const { done, value } = place.startsWith("$") ? { value: memberAt(row, place.slice(1)) } : values.next();
    return done || (value === undefined && place.startsWith("$")) ? place : written(value);
  });
}

/** Returns a function that declares a test or a group for each row. */
function each(what, declare, rows) {
  if (!Array.isArray(rows) || rows.raw !== undefined) throw misuse(`${what}.each needs a list of rows, such as [{ city: "Rome" }], got ${rows?.raw === undefined ? shown(rows) : "a template"}`);
  if (rows.length === 0) throw misuse(`${what}.each got an empty list, so it would declare nothing`);
  return exact(what, (title, ...args) => {
    const body = args.pop();
    // They are refused as without rows.
    if (typeof title !== "string" || typeof body !== "function") return declare(title, ...args, body);
    const titles = rows.map((row, index) => titleOf(title, row, index));
    const seen = new Set();
    const again = titles.find((one) => seen.size === seen.add(one).size);
    if (again !== undefined) throw misuse(`two rows of ${what}.each are called ${shown(again)}: put %s, %# or $member of the row into the name`);
    for (const [index, row] of rows.entries()) declare(titles[index], ...args, (...given) => body(...valuesOf(row), ...given));
  }, 3);
}

return { each };
