"""Preflight: the command, the case, the probes, and what of them is told."""

MESSAGES: dict[str, str] = {
    "{n} probe": "{n} 項探測",
    "{n} probes": "{n} 項探測",
    "{probes}, about {seconds:.1f} s ({least:.1f} to {most:.1f} s)": (
        "{probes}，約 {seconds:.1f} 秒（{least:.1f} 至 {most:.1f} 秒）"
    ),
    "{cost}.": "{cost}。",
    "{cost}; {left} cannot look or are left out.": "{cost}；另有 {left} 項無法進行或略過。",
    "`traindx preflight` needs a script or a target: `traindx preflight train.py`, "
    "`traindx preflight package.module:name`.": (
        "`traindx preflight` 需要一個腳本或目標：`traindx preflight train.py`、"
        "`traindx preflight package.module:name`。"
    ),
    "the batch has no axis of samples": "批次沒有樣本軸",
    "an input has no row for each of the {n} samples": "有一項輸入並非 {n} 個樣本各有一列",
    "no loss was found": "沒有找到損失",
    "the loss of {n} samples alone cannot be computed: {error}": (
        "無法單獨計算 {n} 個樣本的損失：{error}"
    ),
    "the model cannot be copied: {error}": "模型無法複製：{error}",
    "`backward` was given no single number": "`backward` 收到的不是單一數值",
    "what lies between the model and its loss was not seen": "沒有看到模型與損失之間的運算",
    "no loss was given, and the model returns none": "沒有給定損失，模型也沒有傳回損失",
    "A model is a `torch.nn.Module`; got a `{kind}`.": (
        "模型應為 `torch.nn.Module`；收到的是 `{kind}`。"
    ),
    "A loss is a function or module; got a `{kind}`.": "損失應為函式或模組；收到的是 `{kind}`。",
    "The loss gives no single number but {what}. It needs to return a tensor with one element.": (
        "損失傳回的不是單一數值，而是 {what}。它必須傳回只有一個元素的張量。"
    ),
    "no gradient flows from the loss back into the model": "沒有梯度從損失流回模型",
    "The loss fails on the model's output: {error}. It is called as `loss(output, target)`, where "
    "the target is the last element of the batch.": (
        "損失在模型的輸出上失敗：{error}。它以 `loss(output, target)` 呼叫，target "
        "是批次的最後一個元素。"
    ),
    "no target was found": "沒有找到目標值",
    "no optimizer was found": "沒有找到最佳化器",
    "no data loader was seen": "沒有看到資料載入器",
    "no parameter takes gradients": "沒有參數需要梯度",
    "every gradient is too small to compare": "所有梯度都小到無法比較",
    "no gradient reaches the parameters": "沒有梯度到達參數",
    "in float64 it fails: {error}": "在 float64 下失敗：{error}",
    "the model computes in less than float64, in `{name}`": (
        "模型在 `{name}` 中以低於 float64 的精度計算"
    ),
    "no loss whose value at chance is known was seen": "沒有看到已知隨機猜測值的損失",
    "what the loss is given is made with its target": "損失所收到的值是用其目標算出來的",
    "the loss function returns no single number": "損失函式傳回的不是單一數值",
    "the few samples have all the same target": "這幾個樣本的目標值全都相同",
    "no term of the loss is of the parameters alone": "損失中沒有只取決於參數的項",
    "no loss whose least value is known was seen": "沒有看到已知最小值的損失",
    "the model cannot be run on its batch again: {error}": "模型無法在同一批次上再次執行：{error}",
    "left out by `--quick`: it trains": "因 `--quick` 而略過：它需要訓練",
    "the probe failed: {error}": "探測失敗：{error}",
    "The script's own process took no optimizer step. If it trains in processes that it starts, "
    "give preflight a function that returns `model, batch, loss`: "
    "`traindx preflight file.py:name`.": (
        "腳本本身的行程沒有執行最佳化步驟。如果它在自己啟動的行程中訓練，請提供一個傳回 "
        "`model, batch, loss` 的函式：`traindx preflight file.py:name`。"
    ),
    "The script calls its model inside a transform of `torch.func`, where it cannot be probed. "
    "Give preflight a function that returns `model, batch, loss`: "
    "`traindx preflight file.py:name`.": (
        "腳本在 `torch.func` 的轉換中呼叫模型，在那裡無法探測。請提供一個傳回 "
        "`model, batch, loss` 的函式：`traindx preflight file.py:name`。"
    ),
    "The script ended with exit code {code} before its first optimizer step, so there is nothing "
    "to probe.": "腳本在第一個最佳化步驟之前就以結束代碼 {code} 結束，因此沒有可探測的對象。",
    "The script never imported torch, so there is nothing to probe.": (
        "腳本從未匯入 torch，因此沒有可探測的對象。"
    ),
    "{n} backward pass": "{n} 次反向傳播",
    "{n} backward passes": "{n} 次反向傳播",
    "The script made {passes} and no optimizer step. Give preflight a function that returns "
    "`model, batch, loss`: `traindx preflight file.py:name`.": (
        "腳本做了 {passes}，但沒有最佳化步驟。請提供一個傳回 `model, batch, loss` 的函式："
        "`traindx preflight file.py:name`。"
    ),
    "The loader of `{target}` gives no batch.": "`{target}` 的資料載入器沒有給出批次。",
    "Before training: the loss function's own value on a batch, per term, without others.": (
        "訓練前：損失函式本身在一個批次上每項的值，不含其他項。"
    ),
    "What it would be for a guess that looks at nothing: ln C of C classes.": (
        "什麼都不看的猜測會得到的值：C 個類別時為 ln C。"
    ),
    "Before training: standard deviation of what the loss function is given.": (
        "訓練前：損失函式收到的值的標準差。"
    ),
    "What is left of the data loss on a few samples after training on them alone, over that of "
    "the best guess that does not look at the input.": (
        "只在少數樣本上訓練後所剩的資料損失，與不看輸入的最佳猜測的損失之比。"
    ),
    "Steps that this training took.": "這項訓練所用的步數。",
    "Relative error of autograd's derivative along random directions of all parameters, beside "
    "centred differences in float64: the greatest.": (
        "沿著所有參數的隨機方向，autograd 的導數相對於 float64 中央差分的相對誤差：取最大者。"
    ),
    "The same along a random direction of one parameter.": "同上，沿著單一參數的隨機方向。",
    "Change of the loss of the same output when all parameters are doubled.": (
        "所有參數加倍而輸出相同時，損失的變化。"
    ),
    "probed": "已探測",
    "not probed": "未探測",
    "left out, as the settings say": "依設定略過",
    "probing took {seconds:.1f} s (estimate {estimate:.1f} s)": (
        "探測耗時 {seconds:.1f} 秒（預估 {estimate:.1f} 秒）"
    ),
    "probing took {seconds:.1f} s (estimate {estimate:.1f} s, {least:.1f} to {most:.1f} s)": (
        "探測耗時 {seconds:.1f} 秒（預估 {estimate:.1f} 秒，{least:.1f} 至 {most:.1f} 秒）"
    ),
    "{verdict}, by {extent}": "{verdict}（{extent}）",
    "{n} probe before training": "訓練前 {n} 項探測",
    "{n} probes before training": "訓練前 {n} 項探測",
    "before training": "訓練前",
    "{probe} {seconds:.1f} s": "{probe} {seconds:.1f} 秒",
    "{probe} left a trace, which later probes may have seen: {what}": (
        "{probe} 留下了痕跡，之後的探測可能受到影響：{what}"
    ),
    "needs training steps": "需要訓練步驟",
    "{probe}: {reason}": "{probe}：{reason}",
    "there was nothing to measure": "沒有可量測的對象",
    "probes that did not look: {n}": "未進行的探測：{n}",
    "Probes that did not look": "未進行的探測",
}
