"""A headless Chromium, spoken to in its DevTools protocol over a pipe: nothing to install beside it."""

import base64
import json
import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run "
    "--remote-debugging-pipe"
)
# The browser reads commands from descriptor 3 and answers on 4.
START = """
import os, sys
from fcntl import F_DUPFD_CLOEXEC, fcntl
read, write = (fcntl(int(number), F_DUPFD_CLOEXEC, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One tab. `errors` collects what the console and the network complain of.

    Parameters
    ----------
    path : str
        The browser.
    profile : Path
        An empty folder for what it keeps.
    """

    def __init__(self, path, profile):
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        launcher = [sys.executable, "-c", START, str(theirs_in), str(theirs_out)]
        self.process = subprocess.Popen(
            [*launcher, path, *FLAGS.split(), f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.buffer, self.session, self.errors, self.loaded = 0, b"", None, [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def receive(self):
        """The next message; notes errors and loads."""
        while b"\0" not in self.buffer:
            part = os.read(self.back, 1 << 16)
            if not part:
                raise RuntimeError("the browser went away")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        found = json.loads(message)
        method, about = found.get("method"), found.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.errors.append(str(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent" and about["request"]["url"].startswith("http"):
            self.errors.append(f"asked the network for {about['request']['url']}")
        return found

    def call(self, method, **params):
        """Send a command and wait for its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address):
        """Go to an address and wait until it has loaded."""
        for place in ("about:blank", address):  # a new fragment alone would not load the page again
            self.loaded = False
            self.call("Page.navigate", url=place)
            while not self.loaded:
                self.receive()

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def resize(self, width, height):
        """The size of the window; a narrow one is a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def screenshot(self, path):
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def pdf(self):
        """What would be printed."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def close(self):
        """End the browser."""
        os.close(self.to)  # it ends when nobody can command it
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
