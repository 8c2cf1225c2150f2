"""The forms as they look, for 60, 80, 120 and 176 columns: drawn here, filled by `figures`."""

import re

from console.tui.widgets.drawing import Drawing

_MORE = 56
"""Columns by which the widest drawings are wider than those for 120."""


def _stretched(text: str, name: str) -> Drawing:
    """The same with a wider place of that name; what stands right of it moves along."""
    return Drawing.of(re.sub(rf"(\{{<{name} *)", lambda found: found[0] + " " * _MORE, text))


HEADER = (
    Drawing.of(
        """
 {<preset                 } {<state              }{badge   }
"""
    ),
    Drawing.of(
        """
 qwen-console  {<preset                    } {<state                }{badge   }
"""
    ),
    Drawing.of(
        """
 qwen-console   {<preset                     }  {<state                  } {<where                          }{badge   }
"""
    ),
)

_WIDE_RULE = """
─{<title                       }───── VRAM GiB ────── PCIe TX ───── PCIe RX ─ link ────── util ─── temp ─────── power ──
"""
CARDS_RULE = (
    Drawing.of(
        """
────── VRAM GiB ── PCIe TX ── PCIe RX ── util  temp  power ─
"""
    ),
    Drawing.of(
        """
─{<title          }─ VRAM GiB ── PCIe TX ── PCIe RX  link ──── util  temp power 
"""
    ),
    Drawing.of(_WIDE_RULE),
    _stretched(_WIDE_RULE, "title"),
)

_WIDE_CARD = """
{i} {<bar                     }  {vram       }     {tx      }    {rx      }   {<link   }{util}   {temp}  {watt      }
"""
CARD = (
    Drawing.of(
        """
{i} {vram     } {tx      } {rx      } {util } {temp}{watt }
"""
    ),
    Drawing.of(
        """
{i} {<bar       } {vram     } {tx      } {rx      }  {<link }{util}{temp}{watt}
"""
    ),
    Drawing.of(_WIDE_CARD),
    _stretched(_WIDE_CARD, "bar"),
)

_WIDE_LOST = """
{i} {<lost                                                                                                            }
"""
LOST_CARD = (
    Drawing.of(
        """
{i} {<lost                                                 }
"""
    ),
    Drawing.of(
        """
{i} {<lost                                                                    }
"""
    ),
    Drawing.of(_WIDE_LOST),
    _stretched(_WIDE_LOST, "lost"),
)

_SMALL = Drawing.of(
    """
─ prefix cache {win}───────┬─ latency mean ──────── p90 ── n
 hit {hit   } life{life  } │ TTFT {t_m   } {t_p90     }{t_n}
 cached   {cached} tokens  │ ITL  {g_m   } {g_p90     }{g_n}
 computed {fresh } tokens  │ TPOT {o_m   } {o_p90     }{o_n}
─ scheduler ──────── KV ───┼───── output ──── MTP  last TTFT
 run{run} wait{wai} {kv   }│ {out      } {acc   } {lttft0 }
"""
)
LOW_READING = (_SMALL,)
"""For terminals of few rows."""

READING = (
    _SMALL,
    Drawing.of(
        """
─ prefix cache {win} lifetime ┬─ latency mean ───────── p50 ───────── p90 ─── n 
 hit rate   {hit   } {life  } │ TTFT {t_m   } {t_p50      } {t_p90      }{t_n }
 cached     {cached} tokens   │ queue{q_m   } {q_p50      } {q_p90      }{q_n }
 computed   {fresh } tokens   │ ITL  {g_m   } {g_p50      } {g_p90      }{g_n }
 block      {block } tokens   │ TPOT {o_m   } {o_p50      } {o_p90      }{o_n }
─ scheduler ──────────────────┼─ last requests ─── TTFT ──── cached ── computed 
 running {run } waiting{wai } │ {<age0     }  {lttft0 }   {lhit0  }   {lnew0  }
 KV used{kv   } preempt{pre } │ {<age1     }  {lttft1 }   {lhit1  }   {lnew1  }
─ throughput ─────────────────┼─ MTP ───────────────────────────────────────────
 output  {out       }         │ accepted{acc  } mean length{len } drafts{dra  }
 prefill {pref      } per req │ positions   {<pos                             }
"""
    ),
    Drawing.of(
        """
─ prefix cache ─────{win  }──── lifetime ─┬─ latency ───────── mean ────────── p50 ────────── p90 ────────── p99 ──── n 
 hit rate       {hit     }    {life    }  │ TTFT           {t_m   }  {t_p50      }  {t_p90      }  {t_p99      }{t_n  }
 cached         {cached  } tokens         │ queue          {q_m   }  {q_p50      }  {q_p90      }  {q_p99      }{q_n  }
 computed       {fresh   } tokens         │ ITL   per step {g_m   }  {g_p50      }  {g_p90      }  {g_p99      }{g_n  }
 block          {block   } tokens         │ TPOT  per req. {o_m   }  {o_p50      }  {o_p90      }  {o_p99      }{o_n  }
─ scheduler ──────────────────────────────┤ e2e            {e_m   }  {e_p50      }  {e_p90      }  {e_p99      }{e_n  }
 running        {run     } waiting {wai } ├─ last requests ─── TTFT ─────── prompt ─────── cached ───── computed ───────
 KV used        {kv      }                │ {<age0      } {lttft0 }    {lprompt0 }      {lhit0  }      {lnew0  }
 preempted      {pre     }                │ {<age1      } {lttft1 }    {lprompt1 }      {lhit1  }      {lnew1  }
─ throughput ─────────────────────────────┤ {<age2      } {lttft2 }    {lprompt2 }      {lhit2  }      {lnew2  }
 output       {out       }                ├─ MTP ───────────────────────────────────────────────────────────────────────
 prefill      {pref      } per request    │ accepted      {acc    }  mean length{len }  drafts {dra   }
                                          │ positions        {<pos                                                    }
"""
    ),
)
