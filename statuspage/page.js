"use strict";
// Puts the figures of a new copy of this page into it, every two seconds while somebody can see it.
(function () {
  const away = document.getElementById("away");
  async function renew() {
    try {
      if (!document.hidden && !String(getSelection())) {
        const answer = await fetch(location.href, {cache: "no-store", signal: AbortSignal.timeout(5000)});
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const id of ["state", "live", "rows"]) {
          document.getElementById(id).replaceWith(page.getElementById(id));
        }
        away.hidden = true;
      }
    } catch {
      away.hidden = false;
    }
    setTimeout(renew, 2000);
  }
  setTimeout(renew, 2000);
})();
