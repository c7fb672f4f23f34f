// What people write into forms, and the form that an MCP server asks for. Its schema is foreign: any part of it may have any type.
import { changingNumber, visible } from './parts.js';

const cut = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** Returns the value of a JSON text. Throws a text for people: `problem`, or which number would be another one; `name`: of which field. */
export function parseJson(text, problem, name) {
  const fail = (why) => {
    throw new Error(name === undefined ? why : `${name}: ${why}`);
  };
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    fail(problem);
  }
  const number = changingNumber(text);
  if (number !== undefined) fail(`the number ${cut(number)} cannot be kept exactly; send it as text: "${cut(number)}"`);
  return value;
}

/** Returns the number of a field. Throws a text for people if it would be another one. */
export function readNumber(text, name) {
  if (changingNumber(text) === undefined) return Number(text);
  throw new Error(`${name}: the number ${cut(text)} cannot be kept exactly`);
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const words = (value) => (typeof value === 'string' ? visible(value) : '');
const textOf = (value) => words(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/** The type of a field; of one that may be null, the other type. */
function typeOf(field) {
  const types = [field.type, ...(Array.isArray(field.anyOf) ? field.anyOf.map((one) => one?.type) : [])];
  return types.flat().find((type) => typeof type === 'string' && type !== 'null');
}

/** The values that a field may have, each with its title; null if it may have any. */
function choicesOf(field) {
  const isList = typeOf(field) === 'array';
  const each = !isList ? field : isObject(field.items) ? field.items : {};
  if (typeOf(each) === 'boolean') return [[true, 'yes'], [false, 'no']];
  if (Array.isArray(each.enum)) return each.enum.map((value, at) => [value, words(each.enumNames?.[at]) || textOf(value)]);
  const titled = [each.oneOf, each.anyOf].find(Array.isArray)?.filter((one) => one?.const !== undefined) ?? [];
  return titled.length === 0 ? null : titled.map((one) => [one.const, words(one.title) || textOf(one.const)]);
}

/** Returns what the page shows of each field, and how it reads what a person gives. */
export function fieldsOf({ properties, required }) {
  return Object.entries(isObject(properties) ? properties : {}).map(([name, given]) => {
    const field = isObject(given) ? given : {};
    const type = typeOf(field);
    const first = field.default ?? [];
    return {
      name,
      title: words(field.title) || words(name),
      about: words(field.description),
      isNeeded: Array.isArray(required) && required.includes(name),
      isList: type === 'array',
      isNumber: type === 'integer' || type === 'number',
      choices: choicesOf(field),
      first: Array.isArray(first) ? first : [first],
      firstText: textOf((Array.isArray(first) ? first : [first])[0]),
    };
  });
}

/** Returns the answer to a form; a field that is left empty is not in it. `textsOf`: what was given for the field at a place. */
export function readFields(form, textsOf) {
  const given = fieldsOf(form).flatMap(({ name, title, choices, isList, isNumber }, at) => {
    const texts = textsOf(at).filter((text) => text !== '');
    if (texts.length === 0) return [];
    const values = choices ? texts.map((text) => JSON.parse(text)) : isNumber ? texts.map((text) => readNumber(text, title)) : texts;
    return [[name, isList ? values : values[0]]];
  });
  return Object.fromEntries(given);
}
