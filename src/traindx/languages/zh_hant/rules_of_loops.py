"""S014, S015, G011, O017, and what O005, E006 and E014 say of warmups, other models and order."""

MESSAGES: dict[str, str] = {
    # S014 identical-parts
    "Parts of a model hold the same weights and get the same gradients: they are one part.": (
        "模型的幾個部分權重相同、得到的梯度也相同：它們其實是同一個部分。"
    ),
    "`{second}` has the weights of `{first}` and gets its gradients, number for number; {count} "
    "weights of {model} of this shape are one": (
        "`{second}` 的權重與梯度和 `{first}` 的逐數相同；"
        "{model} 中這個形狀的 {count} 個權重其實是一個"
    ),
    "They were copied, and nothing that is done with them tells them apart.": (
        "它們是複製來的，而對它們所做的一切都不加區別。"
    ),
    "nn.ModuleList([make() for _ in range({count})])": (
        "nn.ModuleList([make() for _ in range({count})])"
    ),
    "weights that are shared": "共用的權重",
    "copies that get other gradients": "得到其他梯度的複本",
    # S015 repeated-module
    "A list of modules holds one and the same module several times, with the same parameters.": (
        "模組清單中同一個模組出現多次，參數也是同一份。"
    ),
    "`{place}` holds the same module {times:.0f} times, so that its parameters exist once": (
        "`{place}` 含有同一個模組 {times:.0f} 次，因此它的參數只有一份"
    ),
    "A list was multiplied, or one module was put in again and again.": (
        "清單被乘以一個數，或同一個模組被一再放入。"
    ),
    "modules without parameters": "沒有參數的模組",
    # G011 discarded-gradient
    "Gradients of several batches are computed for each step, and all but the last are cleared.": (
        "每一步計算了好幾個批次的梯度，除了最後一個以外都被清掉。"
    ),
    "of {passes:.0f} backward passes before a step of {optimizer} the gradients of {lost:.0f} were "
    "cleared before it": (
        "在 {optimizer} 的一步之前有 {passes:.0f} 次反向傳播，"
        "其中 {lost:.0f} 次的梯度在該步之前就被清掉"
    ),
    "`zero_grad()` is called at each batch, and `step()` is not.": (
        "每個批次都呼叫 `zero_grad()`，卻沒有每次都呼叫 `step()`。"
    ),
    "optimizer.step(); optimizer.zero_grad()  # both after the last batch, or each": (
        "optimizer.step(); optimizer.zero_grad()  # 兩者都放在最後一個批次之後，或每個批次之後"
    ),
    "gradients that are gathered elsewhere": "在別處收集的梯度",
    "passes for an input's sake": "為了輸入而做的反向傳播",
    # O017 odd-adam-settings
    "Adam's settings undo what it is for: its averages are swapped, or `eps` drowns them.": (
        "Adam 的設定抵消了它的用處：兩個平均顛倒了，或被 `eps` 淹沒。"
    ),
    "the `eps` of {optimizer} is {eps:.1g}, and no weight of {model} has ever had a gradient above "
    "{largest:.2g} RMS": (
        "{optimizer} 的 `eps` 是 {eps:.1g}，而 {model} 沒有一個權重的梯度 RMS 曾超過 {largest:.2g}"
    ),
    "It divides by `eps` in place of the gradients' size.": "它除以 `eps`，而不是梯度的大小。",
    "eps=1e-8": "eps=1e-8",
    "a loss that falls": "正在下降的損失",
    "the betas of {optimizer} are {first:g} and {second:g}: gradients of about {long:.0f} steps "
    "are divided by the size of those of the last {short:.0f}": (
        "{optimizer} 的 betas 是 {first:g} 與 {second:g}：約 {long:.0f} 步的梯度被除以最近 "
        "{short:.0f} 步梯度的大小"
    ),
    "The betas are in the wrong order.": "兩個 beta 的順序顛倒了。",
    "betas=({first:g}, {second:g})": "betas=({first:g}, {second:g})",
    "betas that are equal": "相等的 beta",
    # O005 scheduler-misuse, never there
    "the learning rate of {optimizer} was never above {peak:.3g} in {steps} steps, though it was "
    "to be {meant:.3g}": (
        "{optimizer} 的學習率在 {steps} 步中從未超過 {peak:.3g}，而原本要到 {meant:.3g}"
    ),
    "The function that `LambdaLR` was given returns a rate; what it returns is multiplied with the "
    "optimizer's.": "給 `LambdaLR` 的函數回傳的是學習率；它的回傳值會再乘上最佳化器的學習率。",
    "Let the function return a factor: 1 for the rate that the optimizer was made with.": (
        "讓函數回傳倍數：1 代表最佳化器建立時的學習率。"
    ),
    "The scheduler counts steps, and its `step()` is called once an epoch or not at all: the "
    "warmup never ends.": (
        "排程器以步計數，它的 `step()` 卻每個 epoch 只呼叫一次，或從未呼叫：暖身永遠不會結束。"
    ),
    "optimizer.step(); scheduler.step()  # both after each batch": (
        "optimizer.step(); scheduler.step()  # 兩者都在每個批次之後"
    ),
    "a training that goes on late in its schedule": "從排程後段接續的訓練",
    # E014 weights-not-loaded, overwritten
    "{part:.0%} of the weights that were loaded into {place} were others when it was first called, "
    "before any step": (
        "載入 {place} 的權重有 {part:.0%} 在它第一次被呼叫、任何一步之前，就已經換成別的"
    ),
    "They were initialized after loading.": "它們在載入之後又被初始化。",
    "model.apply(initialize); model.load_state_dict(state)  # in this order": (
        "model.apply(initialize); model.load_state_dict(state)  # 依此順序"
    ),
    "small changes, as by rounding": "小的變動，例如捨入",
    # E006 copy-differs, another model
    "{copy} is evaluated after training and {model} is not, though no weight of {copy} was "
    "trained: they differ by {moved:.2g} of their size in the median (threshold {threshold:g})": (
        "訓練之後評估的是 {copy} 而不是 {model}，但 {copy} 沒有一個權重受過訓練："
        "兩者的差距中位數是其大小的 {moved:.2g}（門檻 {threshold:g}）"
    ),
    "What was trained is another object, and was not loaded into this one.": (
        "受訓練的是另一個物件，而且沒有載入到這一個。"
    ),
    "{copy}.load_state_dict({model}.state_dict())": "{copy}.load_state_dict({model}.state_dict())",
    # quantities
    "How often the same module with parameters stands in a list of modules.": (
        "同一個有參數的模組在模組清單中出現幾次。"
    ),
    "passes": "次",
    "Backward passes in the step whose gradients were cleared before it, so that the last pass "
    "alone counts; not noted where there are none.": (
        "這一步中梯度在 step 之前就被清掉的反向傳播次數，因此只有最後一次算數；沒有時不記錄。"
    ),
    "1 where the model's input requires a gradient; not noted where it does not.": (
        "模型的輸入需要梯度時為 1；不需要時不記錄。"
    ),
    "Of the weights that were loaded into a module, the part that was far from what had been "
    "loaded when it was first called, before any step.": (
        "載入模組的權重中，在它第一次被呼叫、任何一步之前，就已經與載入值相差很遠的比例。"
    ),
}
