"use strict";

const find = (id) => document.getElementById(id);

const make = (name, text, attributes = {}) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

const ask = async (path, options = {}) => {
  const headers = { ...options.headers };
  const token = find("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { ...options, headers });
};

const fact = (list, name, value) => {
  if (value === null || value === undefined) return;
  list.append(make("dt", name), make("dd", String(value)));
};

/* What a release promises, first. */
const showModel = async (model) => {
  const answer = await ask(`v1/guarantee?model=${encodeURIComponent(model.name)}`);
  const about = await answer.json();
  const article = make("article");
  article.append(make("h3", model.name), make("p", about.guarantee ?? about.error, { class: "headline" }));
  if (about.caution) article.append(make("p", about.caution));
  const list = make("dl");
  const statement = about.statement ?? {};
  fact(list, "epsilon", statement.epsilon);
  fact(list, "delta", statement.delta);
  fact(list, "unit", statement.unit);
  fact(list, "accountant", statement.accountant);
  fact(list, "nodes", statement.nodes);
  fact(list, "exported", about.exported?.date);
  fact(list, "predictions about its nodes", model.nodes ? (model.owners_only ? "for their owners alone" : "yes") : "no");
  fact(list, "predictions about new rows", model.rows ? "yes" : "no");
  fact(list, "release (SHA-256)", about.release);
  article.append(list);
  return article;
};

/* The schema that a name in the description leads to. */
const resolved = (description, schema) => {
  if (!schema?.$ref) return schema ?? {};
  return schema.$ref.slice(2).split("/").reduce((value, key) => value?.[key], description) ?? {};
};

/* A value that fits to a schema, to begin with. */
const example = (description, schema, model, depth = 0) => {
  const found = resolved(description, schema);
  const type = Array.isArray(found.type) ? found.type.find((name) => name !== "null") : found.type;
  if (found.enum) return found.enum.at(-1);
  if (type === "array") return depth > 4 ? [] : [example(description, found.items, model, depth + 1)];
  if (type === "object" || found.properties) {
    const value = {};
    for (const name of found.required ?? []) value[name] = example(description, found.properties[name], model, depth + 1);
    return value;
  }
  if (type === "integer" || type === "number") return 1;
  if (type === "boolean") return false;
  return "id";
};

const showRoute = (description, path, method, operation, models) => {
  const details = make("details");
  const summary = make("summary");
  summary.append(make("span", method.toUpperCase(), { class: "method" }), make("code", path));
  summary.append(document.createTextNode(` ${operation.summary ?? operation.description ?? ""}`));
  const form = make("form");
  const inputs = [];
  for (const parameter of operation.parameters ?? []) {
    const label = make("label", `${parameter.name} `);
    const input = make("input", undefined, { name: parameter.name });
    if (parameter.required) input.required = true;
    if (parameter.name === "model" && models.length > 0) input.value = models[0].name;
    label.append(input);
    form.append(label);
    inputs.push([parameter, input]);
  }
  const types = Object.entries(operation.requestBody?.content ?? {});
  let text;
  if (types.length > 0) {
    const label = make("label", "Body");
    text = make("textarea", undefined, { spellcheck: "false" });
    text.value = JSON.stringify(example(description, types[0][1].schema, models[0]), null, 1);
    label.append(text);
    form.append(label);
  }
  const send = make("button", "Send", { type: "submit" });
  const result = make("pre", "", { "aria-live": "polite", hidden: "" });
  form.append(send, result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let address = path.slice(1);
    const query = new URLSearchParams();
    for (const [parameter, input] of inputs) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(parameter.name, input.value);
    }
    if (query.size > 0) address += `?${query}`;
    const isCsv = text && !/^\s*[[{]/.test(text.value) && types.some(([type]) => type === "text/csv");
    const type = isCsv ? "text/csv" : "application/json";
    const options = text ? { method, body: text.value, headers: { "Content-Type": type } } : { method };
    result.hidden = false;
    try {
      const answer = await ask(address, options);
      let body = await answer.text();
      try { body = JSON.stringify(JSON.parse(body), null, 1); } catch { /* not JSON */ }
      result.textContent = `${answer.status} ${answer.statusText}\n${body}`;
      result.className = answer.ok ? "good" : "bad";
    } catch (error) {
      result.textContent = `No answer: ${error.message}`;
      result.className = "bad";
    }
  });
  details.append(summary, form);
  return details;
};

const load = async () => {
  const status = find("status");
  try {
    const description = await (await fetch("openapi.json")).json();
    const answer = await ask("v1/models");
    const found = await answer.json();
    const models = answer.ok ? found.models : [];
    find("models").replaceChildren(...(await Promise.all(models.map(showModel))));
    const routes = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => showRoute(description, path, method, operation, models)));
    find("routes").replaceChildren(...routes);
    status.textContent = answer.ok ? `${models.length} ${models.length === 1 ? "release" : "releases"}` : found.error;
  } catch (error) {
    status.textContent = `The server does not answer: ${error.message}`;
  }
};

find("load").addEventListener("click", load);
load();
