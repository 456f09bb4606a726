// One key an answer. Without this script the buttons send the same form themselves.
"use strict";

const answers = document.getElementById("answers");
const note = document.getElementById("note");
const told = document.getElementById("told");
const trouble = document.getElementById("trouble");
const keys = document.getElementById("keys");
let kept = note.value;
// One at a time, in the order of the keys: the newest answer is the one that counts.
let turn = Promise.resolve();

keys.checked = localStorage.getItem("keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));

function show(standing, words) {
  for (const button of answers.querySelectorAll("button[data-key]")) {
    const [question, value] = button.value.split(":");
    button.setAttribute("aria-pressed", String(standing.answers[question] === value));
  }
  document.getElementById("done").textContent = standing.done;
  document.getElementById("progress").value = standing.done;
  const open = document.getElementById("open");
  open.hidden = standing.next_open === null;
  if (standing.next_open !== null) open.href = `/items/${standing.next_open}`;
  const state = standing.next_open === null ? "All items are done." : standing.is_done ? "Done: Enter goes on." : "";
  told.textContent = `${words} ${state}`.trim();
  trouble.textContent = "";
}

async function post(address, fields) {
  // Another program may be writing to the database.
  const slow = setTimeout(() => { told.textContent = "Storing…"; }, 1000);
  const sent = await fetch(address, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(fields),
  }).catch(() => {
    throw new Error("nobody answers. Is `reward-audit review serve` still running?");
  }).finally(() => clearTimeout(slow));
  if (!sent.ok) throw new Error((await sent.text()).trim());
  return sent.json();
}

function after(work) {
  turn = turn.then(work).catch((error) => {
    told.textContent = "";
    trouble.textContent = `Not stored: ${error.message}`;
  });
  return turn;
}

function answer(button) {
  // Left on the button, Enter would press it again and not go on.
  button.blur();
  return after(async () => {
    const written = note.value;
    const words = button.value === "note" ? "Note stored." : "Stored.";
    show(await post(answers.action, { answer: button.value, note: written }), words);
    kept = written;
  });
}

function isAnswered() {
  return answers.querySelector("[aria-pressed=true]") !== null;
}

answers.addEventListener("submit", (event) => {
  event.preventDefault();
  answer(event.submitter);
});

note.addEventListener("change", () => {
  after(async () => {
    if (note.value !== kept && !isAnswered()) {
      told.textContent = "The note waits: it is stored with your first answer.";
    } else if (note.value !== kept) {
      const written = note.value;
      show(await post(answers.action, { answer: "note", note: written }), "Note stored.");
      kept = written;
    }
  });
});

if (location.hash === "#taken-back") {
  told.textContent = `Taken back. ${told.textContent}`.trim();
  history.replaceState(null, "", location.pathname);
}

addEventListener("beforeunload", (event) => {
  if (note.value !== kept) event.preventDefault();
});

document.querySelector("form[action='/undo']").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  event.submitter.blur();
  const here = Number(form.elements.number.value);
  after(async () => {
    const standing = await post(form.action, { number: here });
    if (standing.number !== here) location.href = `/items/${standing.number}#taken-back`;
    else show(standing, standing.undone ? "Taken back." : "Nothing to take back: nothing was answered since this sitting began.");
  });
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.key === "Enter" && event.target === note) note.blur();
  if (event.key === "Escape" && event.target === note) note.blur();
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.matches("textarea, input") || !keys.checked) return;
  // Enter does what it always does on a button or a link that has the focus, and arrows scroll a transcript.
  if (event.key === "Enter" && event.target.matches("a, button, summary")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const found = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (found === null || found.hidden) return;
  event.preventDefault();
  if (found === note) note.focus();
  else if (found.matches("a")) after(async () => { location.href = found.href; });
  else found.form.requestSubmit(found);
});
